//! The table of the classes of strategies, which serialisation, the command line, the tests of all classes
//! and the benches read.

use serde::{Deserialize, Serialize};

/// Passes the table to another macro; a row is a class, the type of its strategies, and its name.
macro_rules! for_each_class {
    ($then:ident) => {
        $then! {
            /// C = I: independent noise, DP-SGD.
            Identity(Identity) = "identity";
            /// C = A: fresh noise on the answer of each query.
            OutputPerturbation(OutputPerturbation) = "workload";
            /// n Toeplitz coefficients: the square root of A, or optimised.
            Toeplitz(Toeplitz) = "toeplitz";
            /// The first few Toeplitz coefficients only.
            BandedToeplitz(BandedToeplitz) = "banded-toeplitz";
            /// A few free entries per column, columns of norm 1.
            Banded(Banded) = "banded";
            /// A few coefficients of C^-1.
            BandedInverse(BandedInverse) = "banded-inverse";
            /// A few geometric sequences.
            Blt(Blt) = "blt";
            /// Every entry free.
            Dense(Dense) = "dense";
            /// A binary tree over the steps, decoded by the dyadic partition.
            Tree(BinaryTree) = "tree";
            /// The tree, decoded by averages of the levels that are complete.
            HonakerOnline(HonakerOnline) = "honaker-online";
            /// The tree with its best decoder.
            HonakerFull(HonakerFull) = "honaker-full";
            /// The smooth binary tree: every prefix sum is decoded from the same number of nodes.
            SmoothTree(SmoothTree) = "smooth-tree";
            /// The tree decoded from below, with one optimised weight per height.
            WeightedTree(WeightedTree) = "weighted-tree";
            /// The square root of a circulant that holds prefix sums.
            Fourier(Fourier) = "fourier";
            /// The Fourier mechanism with its best decoder.
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
            /// Every class.
            pub const ALL: &'static [Self] = &[$(Self::$class,)*];

            /// Returns the name in files and on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Self::$class => $name,)* }
            }
        }
    };
}

for_each_class!(define_class);
