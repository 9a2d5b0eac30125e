//! The recursion of a BLT whose weights vary by step, its matrix and the deviations of its buffers.

use antinoise_linear::Matrix;

/// Computes y_t = z_t - reads\[t\] . M; then M_i <- decay\[i\] M_i + writes\[t, i\] y_t, from M = 0.
pub(super) fn apply(decay: &[f64], reads: &[f64], writes: &[f64], z: &[f64]) -> Vec<f64> {
    let order = decay.len();
    let mut buffers = vec![0.0; order];
    let step = |(t, &z): (usize, &f64)| {
        let at = t * order..(t + 1) * order;
        let out = z - reads[at.clone()].iter().zip(&buffers).map(|(u, m)| u * m).sum::<f64>();
        for ((m, lambda), v) in buffers.iter_mut().zip(decay).zip(&writes[at]) {
            *m = lambda * *m + v * out;
        }
        out
    };
    z.iter().enumerate().map(step).collect()
}

/// Returns the C with this diagonal and, below it, C\[t, j\] = sum_i reads\[t, i\] decay\[i\]^(t-1-j)
/// writes\[j, i\].
pub(crate) fn written_out(decay: &[f64], reads: &[f64], writes: &[f64], diagonal: &[f64]) -> Matrix {
    let (n, order) = (diagonal.len(), decay.len());
    let mut c = Matrix::zeros(n, n);
    for (j, &on_diagonal) in diagonal.iter().enumerate() {
        let mut kept = writes[j * order..(j + 1) * order].to_vec();
        let column = c.column_mut(j);
        column[j] = on_diagonal;
        for (t, entry) in column.iter_mut().enumerate().skip(j + 1) {
            *entry = reads[t * order..(t + 1) * order].iter().zip(&kept).map(|(u, m)| u * m).sum();
            kept.iter_mut().zip(decay).for_each(|(m, lambda)| *m *= lambda);
        }
    }
    c
}

/// Returns, for each step, the standard deviation of its noise and, before it, those of the buffers.
pub(crate) fn deviations(decay: &[f64], reads: &[f64], writes: &[f64], steps: usize) -> Vec<(f64, Vec<f64>)> {
    let order = decay.len();
    // Covariances of the buffers.
    let mut s = vec![0.0; order * order];
    let mut found = Vec::with_capacity(steps);
    for t in 0..steps {
        let (u, v) = (&reads[t * order..][..order], &writes[t * order..][..order]);
        let a: Vec<f64> =
            s.chunks_exact(order.max(1)).map(|row| row.iter().zip(u).map(|(s, u)| s * u).sum()).collect();
        let seen = a.iter().zip(u).map(|(a, u)| a * u).sum::<f64>();
        // `f64::max` would ignore NaN.
        let variance = if seen < 0.0 { 1.0 } else { 1.0 + seen };
        found.push((variance.sqrt(), (0..order).map(|i| s[i * order + i].sqrt()).collect()));
        for i in 0..order {
            for j in 0..order {
                let kept = decay[i] * decay[j] * s[i * order + j];
                let crossed = decay[i] * a[i] * v[j] + v[i] * a[j] * decay[j];
                s[i * order + j] = kept - crossed + variance * v[i] * v[j];
            }
        }
        // A variance that rounding makes negative is 0.
        (0..order)
            .for_each(|i| s[i * order + i] = if s[i * order + i] < 0.0 { 0.0 } else { s[i * order + i] });
    }
    found
}
