//! The model against finite differences, against candle's automatic differentiation, and against itself in
//! other batches.

use candle_core::{D, DType, Device, Result as TensorResult, Tensor, Var};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use super::Lstm;
use super::pass::{Sequence, Workspace};

const LENGTHS: [usize; 3] = [5, 1, 7];

fn texts(model: &Lstm, seed: u64) -> Vec<Vec<u8>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    LENGTHS
        .iter()
        .map(|&n| (0..n).map(|_| (rng.next_u32() as usize % model.symbols) as u8).collect())
        .collect()
}

fn sequences(texts: &[Vec<u8>]) -> impl Iterator<Item = Sequence<'_>> + Clone {
    texts.iter().map(|symbols| Sequence { before: 1, symbols })
}

fn start(model: &Lstm) -> Vec<f32> {
    let mut start = model.initial_parameters(&mut ChaCha8Rng::seed_from_u64(3));
    // Biases of 0 would hide mistakes.
    start.iter_mut().enumerate().for_each(|(i, x)| *x += 0.1 * (i as f32).sin());
    start
}

/// The mean loss and its gradient.
fn learned(model: &Lstm, parameters: &[f32], texts: &[Vec<u8>]) -> (f64, Vec<f32>) {
    let mut gradient = vec![f32::NAN; model.parameters()];
    let totals =
        model.loss_and_gradient(&mut Workspace::default(), parameters, sequences(texts), &mut gradient);
    assert_eq!(totals.symbols, texts.iter().map(Vec::len).sum::<usize>());
    (totals.loss / totals.symbols as f64, gradient)
}

/// The mean loss and its gradient by candle, in double precision, from the formulas.
fn by_candle(model: &Lstm, parameters: &[f32], texts: &[Vec<u8>]) -> TensorResult<(f64, Vec<f64>)> {
    let (device, parts) = (&Device::Cpu, model.parts());
    let wide: Vec<f64> = parameters.iter().map(|&x| f64::from(x)).collect();
    let theta = Var::from_vec(wide, parameters.len(), device)?;
    let part = |range: std::ops::Range<usize>, rows: usize| {
        theta.narrow(0, range.start, range.len())?.reshape((rows, range.len() / rows))
    };
    let (embedding, input) = (part(parts.embedding, model.symbols)?, part(parts.input, model.embedding)?);
    let (hidden, bias) = (part(parts.hidden, model.hidden)?, part(parts.bias, 1)?);
    let (output, output_bias) = (part(parts.output, model.hidden)?, part(parts.output_bias, 1)?);
    let sigmoid = |x: Tensor| (x.neg()?.exp()? + 1.0)?.recip();
    let (mut losses, mut count) = (Vec::new(), 0.0);
    for text in texts {
        let mut h = Tensor::zeros((1, model.hidden), DType::F64, device)?;
        let (mut c, mut last) = (h.clone(), 1);
        for &symbol in text {
            let x = embedding.narrow(0, last, 1)?;
            let gates = ((x.matmul(&input)? + h.matmul(&hidden)?)? + &bias)?;
            let gate = |i: usize| gates.narrow(1, i * model.hidden, model.hidden);
            c = ((sigmoid(gate(1)?)? * c)? + (sigmoid(gate(0)?)? * gate(2)?.tanh()?)?)?;
            h = (sigmoid(gate(3)?)? * c.tanh()?)?;
            let logits = (h.matmul(&output)? + &output_bias)?;
            let sum = logits.exp()?.sum_keepdim(D::Minus1)?.log()?;
            losses.push((sum - logits.narrow(1, symbol as usize, 1)?)?);
            (last, count) = (symbol as usize, count + 1.0);
        }
    }
    let loss = (Tensor::cat(&losses, 0)?.sum_all()? / count)?;
    let gradients = loss.backward()?;
    Ok((loss.to_scalar()?, gradients.get(&theta).expect("it is used").to_vec1()?))
}

#[test]
fn gradients_are_those_of_candle() {
    for (symbols, embedding, hidden) in [(7, 3, 5), (40, 16, 32), (2, 1, 1)] {
        let model = Lstm::new(symbols, embedding, hidden).unwrap();
        let (parameters, texts) = (start(&model), texts(&model, 5));
        let (loss, gradient) = learned(&model, &parameters, &texts);
        let (exact_loss, exact) = by_candle(&model, &parameters, &texts).unwrap();
        assert!((loss - exact_loss).abs() < 1e-6 * exact_loss, "{loss} {exact_loss}");
        let largest = exact.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        for (i, (found, exact)) in gradient.iter().zip(&exact).enumerate() {
            assert!((f64::from(*found) - exact).abs() < 3e-6 * largest, "{i}: {found} {exact}");
        }
    }
}

#[test]
fn gradients_are_finite_differences() {
    let model = Lstm::new(6, 3, 4).unwrap();
    let (parameters, texts) = (start(&model), texts(&model, 8));
    let (_, gradient) = learned(&model, &parameters, &texts);
    let loss = |parameters: &[f32]| learned(&model, parameters, &texts).0;
    for (i, &slope) in gradient.iter().enumerate() {
        let [less, more] = [-1e-2, 1e-2].map(|by: f32| {
            let mut moved = parameters.clone();
            moved[i] += by;
            (f64::from(moved[i]), loss(&moved))
        });
        let found = (more.1 - less.1) / (more.0 - less.0);
        assert!((found - f64::from(slope)).abs() < 2e-4, "{i}: {found} {slope}");
    }
}

#[test]
fn memory_of_before_changes_nothing_and_longer_company_little() {
    let model = Lstm::new(9, 4, 6).unwrap();
    let (parameters, texts) = (start(&model), texts(&model, 13));
    let mut memory = Workspace::default();
    let mut again = |texts: &[Vec<u8>]| {
        let mut gradient = vec![0.0; model.parameters()];
        let totals = model.loss_and_gradient(&mut memory, &parameters, sequences(texts), &mut gradient);
        (totals, gradient)
    };
    let (first, all) = (again(&texts[..1]), again(&texts));
    assert_eq!(first, again(&texts[..1]));
    assert_eq!(all, again(&texts));
    let (second, third) = (again(&texts[1..2]), again(&texts[2..]));
    let parts = [first, second, third];
    for (i, &x) in all.1.iter().enumerate() {
        let sum: f32 = parts.iter().map(|(totals, g)| totals.symbols as f32 * g[i]).sum();
        assert!((sum / all.0.symbols as f32 - x).abs() < 1e-6, "{i}");
    }
    assert!(again(&[]).1.iter().all(|&x| x == 0.0) && again(&[Vec::new()]).1.iter().all(|&x| x == 0.0));
    assert_eq!(model.evaluate(&mut memory, &parameters, sequences(&texts)), all.0);
}

#[test]
fn sizes_out_of_range_are_refused() {
    for (symbols, embedding, hidden) in [(1, 2, 2), (257, 2, 2), (4, 0, 2), (4, 2, 0), (4, 1 << 15, 2)] {
        assert!(Lstm::new(symbols, embedding, hidden).is_err());
    }
}
