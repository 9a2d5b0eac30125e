//! The table of the classes of strategies, from which serialisation, the command line, tests and benchmarks
//! are generated.

use serde::{Deserialize, Serialize};

/// Passes the table to another macro. Each row is a class, the type of its strategies, and its name.
macro_rules! for_each_class {
    ($then:ident) => {
        $then! {
            /// C = I: independent noise in every step (DP-SGD).
            Identity(Identity) = "identity";
            /// C = A: independent noise on the result of each query.
            OutputPerturbation(OutputPerturbation) = "workload";
            /// Toeplitz C with n coefficients, which are those of sqrt(A), or optimised.
            Toeplitz(Toeplitz) = "toeplitz";
            /// Toeplitz C with few non-zero coefficients.
            BandedToeplitz(BandedToeplitz) = "banded-toeplitz";
            /// Banded C with columns of norm 1 and different entries in each column.
            Banded(Banded) = "banded";
            /// Toeplitz C whose inverse has few non-zero coefficients.
            BandedInverse(BandedInverse) = "banded-inverse";
            /// Buffered linear Toeplitz C, whose coefficients are sums of a few geometric sequences.
            Blt(Blt) = "blt";
            /// A BLT with columns of norm 1 whose weights vary by step: a diagonal plus low rank.
            VaryingBlt(VaryingBlt) = "varying-blt";
            /// Toeplitz C whose coefficients follow a linear recurrence: a rational generating function.
            Rational(Rational) = "rational";
            /// Any lower-triangular C.
            Dense(Dense) = "dense";
            /// A binary tree over the steps, decoded by the dyadic partition.
            Tree(BinaryTree) = "tree";
            /// The tree, with each complete subtree estimated by an average of its levels.
            HonakerOnline(HonakerOnline) = "honaker-online";
            /// The tree with its optimal decoder.
            HonakerFull(HonakerFull) = "honaker-full";
            /// The smooth binary tree, in which every prefix sum reads the same number of nodes.
            SmoothTree(SmoothTree) = "smooth-tree";
            /// The tree of Honaker online, with an optimised weight for each height.
            WeightedTree(WeightedTree) = "weighted-tree";
            /// Columns of the square root of a circulant that contains the prefix sums.
            Fourier(Fourier) = "fourier";
            /// The Fourier mechanism with its optimal decoder.
            FourierOptimal(FourierOptimal) = "fourier-optimal";
        }
    };
}
pub(crate) use for_each_class;

macro_rules! define_class {
    ($($(#[$doc:meta])* $class:ident($type:ident) = $name:literal;)*) => {
        /// The classes of strategies, in the order of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Class {
            $($(#[$doc])* #[serde(rename = $name)] $class,)*
        }

        impl Class {
            /// All classes.
            pub const ALL: &'static [Self] = &[$(Self::$class,)*];

            /// Returns the name of the class in files and on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Self::$class => $name,)* }
            }
        }
    };
}

for_each_class!(define_class);
