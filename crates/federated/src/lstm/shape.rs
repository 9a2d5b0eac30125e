//! The layout of a model's parameters in one flat vector.

use std::ops::Range;

use antinoise_input::{InvalidParameter, at_least, between};
use antinoise_train::model::NamedTensor;
use rand_core::Rng;

/// An LSTM over symbols: embedding, one layer of cells, a linear layer to the logits of the next symbol.
///
/// ```text
/// x_t = E[s_t]                                            E: symbols x embedding
/// (i, f, g, o)_t = x_t W_x + h_{t-1} W_h + b              W_x: embedding x 4 hidden, W_h: hidden x 4 hidden
/// c_t = sigma(f_t) c_{t-1} + sigma(i_t) tanh(g_t)         h_t = sigma(o_t) tanh(c_t)
/// logits_t = h_t U + d                                    U: hidden x symbols
/// ```
///
/// The vector of parameters is E, W_x, W_h, b, U and d, one after the other, each row-major. h and c start
/// at 0.
///
/// ```
/// use antinoise_federated::lstm::Lstm;
/// assert_eq!(Lstm::new(64, 16, 64)?.parameters(), 25_920);
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
///
/// # Source
/// S. Hochreiter, J. Schmidhuber, Long Short-Term Memory, Neural Computation 9 (1997), with forget gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lstm {
    pub(super) symbols: usize,
    pub(super) embedding: usize,
    pub(super) hidden: usize,
}

/// The ranges of the parameter groups.
pub(super) struct Parts {
    pub(super) embedding: Range<usize>,
    pub(super) input: Range<usize>,
    pub(super) hidden: Range<usize>,
    pub(super) bias: Range<usize>,
    pub(super) output: Range<usize>,
    pub(super) output_bias: Range<usize>,
}

const MOST_WIDE: usize = 1 << 14;

impl Lstm {
    /// The model of these sizes.
    ///
    /// # Errors
    /// If there are fewer than 2 or more than 256 symbols, or another size is 0 or above 16,384.
    pub fn new(symbols: usize, embedding: usize, hidden: usize) -> Result<Self, InvalidParameter> {
        between("symbols", symbols, 2, 256, "the values of a byte")?;
        for (name, size) in [("embedding", embedding), ("hidden", hidden)] {
            at_least(name, size, 1)?;
            between(name, size, 1, MOST_WIDE, "the maximum of this model")?;
        }
        Ok(Self { symbols, embedding, hidden })
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.parts().output_bias.end
    }

    /// Number of symbols.
    pub fn symbols(&self) -> usize {
        self.symbols
    }

    /// Length of a symbol's vector.
    pub fn embedding(&self) -> usize {
        self.embedding
    }

    /// Number of cells.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// The parameters as the tensors of PyTorch's `Embedding`, `LSTM` (whose second bias is 0) and `Linear`,
    /// called `embedding`, `lstm` and `linear`.
    ///
    /// ```
    /// use antinoise_federated::lstm::Lstm;
    /// let tensors = Lstm::new(64, 16, 64)?.tensors();
    /// assert_eq!((&tensors[1].name[..], &tensors[1].shape[..]), ("lstm.weight_ih_l0", &[256, 16][..]));
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn tensors(&self) -> Vec<NamedTensor> {
        let Self { symbols, embedding, hidden } = *self;
        let (parts, wide) = (self.parts(), 4 * hidden);
        let plain = |name, shape, of: Range<usize>| NamedTensor::new(name, shape, of.collect());
        // Here rows are inputs, in PyTorch outputs.
        let turned = |name, of: Range<usize>, inputs: usize, outputs: usize| {
            let at = |i| of.start + i % inputs * outputs + i / inputs;
            NamedTensor::new(name, vec![outputs, inputs], (0..inputs * outputs).map(at).collect())
        };
        vec![
            plain("embedding.weight", vec![symbols, embedding], parts.embedding),
            turned("lstm.weight_ih_l0", parts.input, embedding, wide),
            turned("lstm.weight_hh_l0", parts.hidden, hidden, wide),
            plain("lstm.bias_ih_l0", vec![wide], parts.bias),
            turned("linear.weight", parts.output, hidden, symbols),
            plain("linear.bias", vec![symbols], parts.output_bias),
        ]
    }

    pub(super) fn parts(&self) -> Parts {
        let Self { symbols, embedding, hidden } = *self;
        let mut end = 0;
        let mut next = |length: usize| {
            end += length;
            end - length..end
        };
        Parts {
            embedding: next(symbols * embedding),
            input: next(embedding * 4 * hidden),
            hidden: next(hidden * 4 * hidden),
            bias: next(4 * hidden),
            output: next(hidden * symbols),
            output_bias: next(symbols),
        }
    }

    /// Random initial parameters: embeddings uniform in +-1, weights uniform in +-1 / sqrt(hidden), forget
    /// gates open (bias 1), other biases 0.
    ///
    /// Initial parameters need not be secret: privacy does not depend on them.
    pub fn initial_parameters(&self, random: &mut impl Rng) -> Vec<f32> {
        let parts = self.parts();
        let mut unit = || 2.0 * ((random.next_u32() >> 8) as f32 / (1 << 24) as f32) - 1.0;
        let mut parameters = vec![0.0; self.parameters()];
        parameters[parts.embedding].fill_with(&mut unit);
        let bound = 1.0 / (self.hidden as f32).sqrt();
        for part in [parts.input, parts.hidden, parts.output] {
            parameters[part].fill_with(|| unit() * bound);
        }
        parameters[parts.bias][self.hidden..2 * self.hidden].fill(1.0);
        parameters
    }
}
