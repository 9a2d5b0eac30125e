//! The real files, if the Debian package is installed; otherwise the error message.

use antinoise_input::BadInput;
use antinoise_train::data::fashion_mnist;

#[test]
fn the_package_is_read_or_asked_for() {
    match fashion_mnist(None) {
        Ok(dataset) => {
            assert_eq!((dataset.train.len(), dataset.test.len()), (60_000, 10_000));
            assert_eq!((dataset.shape.height, dataset.shape.width, dataset.classes), (28, 28, 10));
            for examples in [&dataset.train, &dataset.test] {
                for class in 0..10 {
                    let count = examples.labels().iter().filter(|&&label| label == class).count();
                    assert_eq!(count, examples.len() / 10);
                }
            }
            assert_eq!(dataset.train.labels()[..5], [9, 0, 0, 3, 0]);
        }
        Err(error) => {
            assert!(error.is_bad_input());
            assert!(error.to_string().contains("apt install dataset-fashion-mnist"), "{error}");
        }
    }
}
