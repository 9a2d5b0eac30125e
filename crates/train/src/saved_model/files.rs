//! Parameters in a safetensors file, which PyTorch, JAX and candle read.

use std::collections::HashMap;
use std::path::Path;

use antinoise_input::InvalidParameter;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::model::NamedTensor;

/// The bytes of a safetensors file with these tensors of a vector of parameters.
///
/// # Errors
/// If the format cannot hold the tensors.
///
/// # Panics
/// If an index of a tensor is beyond the parameters.
pub fn tensors_to_bytes(tensors: &[NamedTensor], parameters: &[f32]) -> Result<Vec<u8>, InvalidParameter> {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|tensor| tensor.indices.iter().flat_map(|&index| parameters[index].to_le_bytes()).collect())
        .collect();
    let refused = |error: safetensors::SafeTensorError| {
        InvalidParameter::new("model's tensors", error, "tensors that a safetensors file can hold")
    };
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|(tensor, bytes)| {
            Ok((&tensor.name, TensorView::new(Dtype::F32, tensor.shape.clone(), bytes).map_err(refused)?))
        })
        .collect::<Result<Vec<_>, InvalidParameter>>()?;
    // One entry: a map of several is written in any order, and the same model must be the same file.
    let metadata = HashMap::from([("format".into(), "pt".into())]);
    safetensors::serialize(views, Some(metadata)).map_err(refused)
}

/// The vector of parameters, each in one of these tensors, in the bytes of the safetensors file at `path`.
pub(super) fn tensors_from_bytes(
    path: &Path,
    tensors: &[NamedTensor],
    bytes: &[u8],
) -> Result<Vec<f32>, InvalidParameter> {
    let count = tensors.iter().map(|tensor| tensor.indices.len()).sum();
    let refused =
        |got: String, must_be: String| InvalidParameter::new(path.display().to_string(), got, must_be);
    let file = SafeTensors::deserialize(bytes)
        .map_err(|error| refused(format!("unreadable ({error})"), "a safetensors file".into()))?;
    let names = || tensors.iter().map(|tensor| &*tensor.name).collect::<Vec<_>>().join(", ");
    if file.len() != tensors.len() {
        return Err(refused(format!("a file of {} tensors", file.len()), format!("one of {}", names())));
    }
    let mut parameters = vec![0.0; count];
    for tensor in tensors {
        let found = file
            .tensor(&tensor.name)
            .map_err(|_| refused(format!("without {}", tensor.name), format!("a file of {}", names())))?;
        if found.dtype() != Dtype::F32 || found.shape() != tensor.shape {
            let got = format!("{} of {:?} {:?}", tensor.name, found.dtype(), found.shape());
            return Err(refused(got, format!("{} of F32 {:?}", tensor.name, tensor.shape)));
        }
        for (number, &index) in found.data().chunks_exact(4).zip(&tensor.indices) {
            parameters[index] = f32::from_le_bytes(number.try_into().expect("4 bytes"));
        }
    }
    if let Some(other) = parameters.iter().find(|x| !x.is_finite()) {
        return Err(refused(format!("a parameter of {other}"), "a file of finite numbers".into()));
    }
    Ok(parameters)
}
