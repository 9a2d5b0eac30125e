//! Noisy sums in the memory of the sums: no second row of numbers is in memory.

use super::{Emit, Emits, Mode, Seen, SeenByAll};
use crate::simd::{Isa, per_isa};
use crate::slices::InputSlices;

/// Numbers whose noisy sums are computed at a time, in memory of their own.
const PIECE: usize = 512;

/// Noisy sums in single precision, each widened in the place of its sum.
impl<M: Mode> Emits<f64> for M {
    type Target<'a> = ();

    fn emit_padding(isa: Isa, (): Self::Target<'_>, out: &mut [f64]) {
        replace(isa, out, |_, sum, noisy| {
            <M as Emits<f32>>::emit_padding(isa, M::to_sum(InputSlices::all(&[sum])), noisy)
        });
    }

    fn emit(self, isa: Isa, how: &Emit<Self::Target<'_>>, noise: &[Self::Number], out: &mut [f64]) {
        replace_sums::<M>(isa, how.factor, out, |at, how, noisy| {
            <M as Emits<f32>>::emit(self, isa, how, &noise[at..][..noisy.len()], noisy);
        });
    }

    fn emit_row(self, isa: Isa, how: &Emit<Self::Target<'_>>, row: &[Self::Row], out: &mut [f64]) {
        replace_sums::<M>(isa, how.factor, out, |at, how, noisy| {
            <M as Emits<f32>>::emit_row(self, isa, how, &row[at..][..noisy.len()], noisy);
        });
    }

    fn see(isa: Isa, (): &Self::Target<'_>, first: usize, out: &[f64]) -> Option<Seen> {
        let (all, mut narrow) = (SeenByAll::default(), [0.0; PIECE]);
        for (number, noisy) in out.chunks(PIECE).enumerate() {
            let narrow = &mut narrow[..noisy.len()];
            // Exact: they were widened.
            narrowed(isa, noisy, narrow);
            all.add(Some(Seen::of(isa, first + number * PIECE, narrow)));
        }
        Some(all.all())
    }
}

/// Replaces each sum by its noisy sum, which `emit` writes, given the index of the first of some sums and how
/// noise is added to them.
fn replace_sums<M: Mode>(
    isa: Isa,
    factor: f64,
    sums: &mut [f64],
    emit: impl Fn(usize, &Emit<<M as Emits<f32>>::Target<'_>>, &mut [f32]),
) {
    replace(isa, sums, |at, sum, noisy| {
        let sums = [sum];
        emit(at, &Emit { target: M::to_sum(InputSlices::all(&sums)), factor, large: false }, noisy);
    });
}

/// Replaces each sum by what `noisy_sum` computes, given the index of the first of some sums, these sums and
/// the memory for their noisy sums.
fn replace(isa: Isa, sums: &mut [f64], mut noisy_sum: impl FnMut(usize, &[f64], &mut [f32])) {
    let mut noisy = [0.0; PIECE];
    for (number, sums) in sums.chunks_mut(PIECE).enumerate() {
        let noisy = &mut noisy[..sums.len()];
        noisy_sum(number * PIECE, sums, noisy);
        widened(isa, noisy, sums);
    }
}

per_isa! {
    fn widened(from: &[f32], to: &mut [f64]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = f64::from(*from);
        }
    }
}

per_isa! {
    fn narrowed(from: &[f64], to: &mut [f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from as f32;
        }
    }
}
