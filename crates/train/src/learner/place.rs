//! Where passes run.

use antinoise_input::InvalidParameter;
use candle_core::{DType, Device, Error as TensorError, Tensor};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::Error;

/// A device, and who works on it: all threads on the CPU, one thread of its own elsewhere.
///
/// candle queues what a thread does on a GPU in a stream of that thread's, and streams do not wait for each other: what one thread
/// uploaded may not be there yet when another reads it. In one thread everything is done in the order in which it is written.
pub(super) struct Place {
    device: Device,
    worker: Option<ThreadPool>,
}

impl Place {
    pub(super) const CPU: Self = Self { device: Device::Cpu, worker: None };

    /// Fails where there is no such device: its first use is here.
    pub(super) fn on(device: Device) -> Result<Self, Error> {
        if device.is_cpu() {
            return Ok(Self::CPU);
        }
        Tensor::zeros(1, DType::F32, &device)?;
        Self::in_one_thread(device)
    }

    pub(super) fn in_one_thread(device: Device) -> Result<Self, Error> {
        let worker = ThreadPoolBuilder::new().num_threads(1).build().map_err(TensorError::wrap)?;
        Ok(Self { device, worker: Some(worker) })
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// What a checkpoint knows it by, since devices round differently; nothing on the CPU.
    pub(super) fn identity(&self) -> &'static str {
        match self.device {
            Device::Cpu => "",
            Device::Cuda(_) => " on CUDA",
            Device::Metal(_) => " on Metal",
        }
    }

    /// What `work` makes, by who works on the device.
    pub(super) fn run<R: Send>(&self, work: impl FnOnce() -> Result<R, Error> + Send) -> Result<R, Error> {
        let made = match &self.worker {
            None => work(),
            Some(worker) => {
                // What the caller's thread uploaded for its network must be there first.
                self.device.synchronize()?;
                worker.install(work)
            }
        };
        made.map_err(of_two_devices)
    }
}

/// Says how a network that mixes devices is mended; other errors as they are.
fn of_two_devices(error: Error) -> Error {
    fn mixed(error: &TensorError) -> Option<String> {
        match error {
            TensorError::DeviceMismatchBinaryOp { lhs, rhs, op } => {
                Some(format!("{rhs:?} beside {lhs:?} in {op}"))
            }
            TensorError::WithBacktrace { inner, .. } | TensorError::Context { inner, .. } => mixed(inner),
            _ => None,
        }
    }
    let Error::Tensor(error) = error else { return error };
    match mixed(&error) {
        Some(got) => {
            let must_be = "that of the parameters, `parameters[0].device()`";
            InvalidParameter::new("device of a network's tensor", got, must_be).into()
        }
        None => error.into(),
    }
}
