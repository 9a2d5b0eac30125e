//! b-min-sep sampling of banded noise, by Monte Carlo with a confidence bound.
//!
//! An example that took part in a step sits out the next `b - 1` steps; otherwise it joins a step
//! independently with probability p. Its initial state is drawn from the stationary distribution: it sits out
//! the first j steps with probability B/N, for each j from 1 to `b - 1`, and none otherwise. With
//! `p = B / (N - (b-1) B)`, every step, the first ones included, takes B of N examples on average.
//!
//! # The pair
//!
//! **Theorem.** Let C be lower triangular without a negative entry, pi a distribution over patterns of
//! participation that is independent of the data, and let the example's contribution `g_s` to step s be any
//! vector of norm 1 at most that is a function of the releases before s (and of whatever else is independent
//! of the example's pattern). Let `m_x` be the sum of C's columns in pattern x. Then no delta, in either
//! direction, is larger than that of the mixture of `N(m_x, sigma^2)` over x drawn from pi against
//! `N(0, sigma^2)`.
//!
//! *Proof.* With sigma = 1, the likelihood ratio of the first t releases is `sum_x A_t(x)`, where
//! `A_t(x) = A_{t-1}(x) e^{v_t(x) - Var v_t(x) / 2}`, `v_t(x) = <mu_t(x), y_t>`,
//! `mu_t(x) = sum_{s in x} C_ts g_s` and `A_0 = pi`. Without the example's data y_t is standard normal given
//! the past, which determines `mu_t`. So given the past the `v_t(x)` are normal, and their covariances
//! `<mu_t(x), mu_t(x')> = sum C_ts C_ts' <g_s, g_s'>` are at most those of contributions that are all the
//! same unit vector, because no entry of C is negative. Both deltas are the mean of a convex function phi of
//! `sum_x A_n(x)`: `(u - e^epsilon)_+` and `(1 - e^epsilon u)_+`. Let `V_t(A)` be the mean of `phi(sum A_n)`
//! given `A_t = A` where from t on all contributions are the same unit vector. Every second derivative of
//! `V_n` is `phi'' >= 0`, the mixed ones too. The same holds for every `V_t`, since
//! `V_{t-1}(A) = E V_t(A e^{v - Var v / 2})` multiplies them by positive numbers (phi is a limit of smooth
//! functions). The derivative of `E V_t(A e^{v - Var v / 2})` along a change D of the covariances is
//! `1/2 sum_{x,x'} D_xx' E[A_x e^{...} A_x' e^{...} d^2 V_t / dA_x dA_x'] >= 0` where no entry of D is
//! negative (Kahane). So each step is worst where its contributions are all the same unit vector, whatever
//! the past: from the last step back, `V_0(pi)` is not exceeded. There only the coordinate along that vector
//! depends on the example. QED
//!
//! The theorem holds for any number of bands, under zero-out and also under add-or-remove, since the
//! other examples' patterns do not depend on this one. The pair is that of Dong and Ganesh, and for bins that
//! of Choquette-Choo et al. (2024).
//!
//! # The ratio
//!
//! Where C has b bands at most, columns of one pattern have disjoint supports. So with
//! `l_t = (<c_t, y> - |c_t|^2 / 2) / sigma^2` the ratio of a pattern is the product of `e^{l_t}` over its
//! steps, and that of all is `f(0) N_0/N + (f(1) + ... + f(b-1)) B/N`, where `N_0 = N - (b-1) B` and
//! `f(t) = (1 - p) f(t+1) + p e^{l_t} f(t+b)`, 1 from the last step on. With more bands, columns of one
//! pattern overlap, and no such recursion is known: such a C is refused.
//!
//! # Source
//! Dong and Ganesh, "Privacy amplification for BandMF via b-min-sep subsampling" (arXiv 2602.09338), for
//! sampler, pair and recursion. The proof for contributions that follow from earlier releases and the
//! importance sampling are our own.

mod pair;
mod replicas;
mod sampling_law;

pub(crate) use pair::MinSepPair;
pub(crate) use sampling_law::SamplingLaw;
