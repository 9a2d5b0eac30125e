//! The device on which passes run.

use antinoise_input::InvalidParameter;
use candle_core::{DType, Device, Error as TensorError, Tensor};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::Error;

/// A device and its threads: all threads on the CPU, one dedicated thread on other devices.
///
/// candle queues the GPU work of each thread in a stream of its own, and streams do not wait for each other:
/// data that one thread uploaded may not have arrived when another thread reads them. With one thread, all
/// work is done in order.
pub(super) struct Worker {
    device: Device,
    thread: Option<ThreadPool>,
}

impl Worker {
    pub(super) const CPU: Self = Self { device: Device::Cpu, thread: None };

    /// Uses the device once, so that an absent device fails here.
    pub(super) fn on(device: Device) -> Result<Self, Error> {
        if device.is_cpu() {
            return Ok(Self::CPU);
        }
        Tensor::zeros(1, DType::F32, &device)?;
        Self::in_one_thread(device)
    }

    pub(super) fn in_one_thread(device: Device) -> Result<Self, Error> {
        let thread = ThreadPoolBuilder::new().num_threads(1).build().map_err(TensorError::wrap)?;
        Ok(Self { device, thread: Some(thread) })
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// The device in a checkpoint's identity, since devices round differently; empty for the CPU.
    pub(super) fn identity(&self) -> &'static str {
        match self.device {
            Device::Cpu => "",
            Device::Cuda(_) => " on CUDA",
            Device::Metal(_) => " on Metal",
        }
    }

    /// Runs `work` on the device's thread or, for the CPU, on the calling thread.
    pub(super) fn run<R: Send>(&self, work: impl FnOnce() -> Result<R, Error> + Send) -> Result<R, Error> {
        let made = match &self.thread {
            None => work(),
            Some(thread) => {
                // Uploads of the calling thread for its model must be complete first.
                self.device.synchronize()?;
                thread.install(work)
            }
        };
        made.map_err(of_two_devices)
    }
}

/// Turns candle's device-mismatch error into one that says how to fix it.
fn of_two_devices(error: Error) -> Error {
    fn mixed(error: &TensorError) -> Option<String> {
        match error {
            TensorError::DeviceMismatchBinaryOp { lhs, rhs, op } => {
                Some(format!("{rhs:?} with {lhs:?} in {op}"))
            }
            TensorError::WithBacktrace { inner, .. } | TensorError::Context { inner, .. } => mixed(inner),
            _ => None,
        }
    }
    let Error::Tensor(error) = error else { return error };
    match mixed(&error) {
        Some(got) => {
            let must_be = "that of the parameters, `parameters[0].device()`";
            InvalidParameter::new("device of a model's tensor", got, must_be).into()
        }
        None => error.into(),
    }
}
