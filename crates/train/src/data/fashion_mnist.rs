use std::path::Path;

use antinoise_input::InvalidParameter;

use super::examples::Dataset;
use super::idx::idx;
use crate::Error;

/// The folder of the Debian package `dataset-fashion-mnist`.
const DEBIAN_FOLDER: &str = "/usr/share/datasets/fashion-mnist";

/// Fashion-MNIST: 60,000 training and 10,000 test images of 28x28 in 10 classes, from `folder` or, if `None`,
/// from the folder of the Debian package `dataset-fashion-mnist`. Features are in \[0, 1\].
///
/// # Errors
/// If the folder is absent (the error names the package), and as [`idx`].
///
/// # Source
/// H. Xiao, K. Rasul, R. Vollgraf, Fashion-MNIST, arXiv:1708.07747.
///
/// ```
/// let error = antinoise_train::data::fashion_mnist(Some("no-such-folder".as_ref())).unwrap_err();
/// assert!(error.to_string().contains("apt install dataset-fashion-mnist"));
/// ```
pub fn fashion_mnist(folder: Option<&Path>) -> Result<Dataset, Error> {
    let folder = folder.unwrap_or(Path::new(DEBIAN_FOLDER));
    if !folder.is_dir() {
        let parameter = format!("Fashion-MNIST's folder {}", folder.display());
        let must_be = "a folder with its four files (apt install dataset-fashion-mnist, or name yours)";
        return Err(InvalidParameter::new(parameter, "absent", must_be).into());
    }
    let dataset = idx(folder)?;
    Ok(Dataset { name: "fashion-mnist".into(), ..dataset })
}
