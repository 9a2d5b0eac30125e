//! Settings: how a caller describes batches or the participation of units.

use antinoise_input::{InvalidParameter, between};
use antinoise_mechanism::Participation;

use crate::{Result, Sampler};

/// Defines the settings by a table. Each row is a setting, with its numbers and example values of them, and
/// its name.
macro_rules! define_settings {
    ($($(#[doc = $doc:literal])* $setting:ident
        $({ $($(#[$of_number:meta])* $number:ident: $type:ty = $example:expr,)* })? = $name:literal;)*) => {
        /// How privacy units participate.
        ///
        /// ```
        /// use antinoise_plan::Setting;
        /// assert_eq!(Setting::named("poisson", None, None)?, Setting::Poisson);
        /// # Ok::<(), antinoise_input::InvalidParameter>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Setting {
            $($(#[doc = $doc])* $setting $({ $($(#[$of_number])* $number: $type,)* })?,)*
        }

        impl Setting {
            /// Every setting with its meaning, in the order of the table; the numbers are examples.
            pub const ALL: &'static [(Self, &'static str)] =
                &[$((Self::$setting $({ $($number: $example,)* })?, concat!($($doc,)*)),)*];

            /// The name of the setting on the command line and in Python.
            pub fn name(self) -> &'static str {
                match self { $(Self::$setting $({ $($number: _,)* })? => $name,)* }
            }
        }
    };
}

define_settings! {
    /// Sampled batches, which amplify privacy, in the form that is best for each mechanism: Poisson sampling
    /// (for C with b bands, the data are split into b groups, and each step samples from one of them, in
    /// cyclic order), balls in bins (each example is put at random, once for the run, in one of as many bins
    /// as an epoch has batches), or cyclic batches if sampling gains nothing. The row "Batches" of the
    /// privacy statement says which one was chosen: batches must be formed in that way.
    Poisson = "poisson";
    /// For C with b bands: Poisson sampling from all examples that are not in the last b - 1 batches. It
    /// amplifies privacy more than the cyclic groups of poisson.
    BMinSep = "b-min-sep";
    /// Data are shuffled once and cut into batches, which are used in the same order in every epoch.
    Cyclic = "cyclic";
    /// Data are shuffled anew in every epoch and cut into batches, as loaders do by default. Cyclic batches
    /// need less noise.
    Shuffled = "shuffled";
    /// Units take part when they are available, at least --min-sep steps apart.
    Federated {
        /// b: smallest distance of two steps of a unit.
        min_sep: usize = 1,
        /// k: largest number of steps of a unit; `None` for as many as fit.
        max_participations: Option<usize> = None,
    } = "federated";
    /// Each example takes part at most once, in batches of shuffled data.
    Single = "single";
    /// One pass over the data in their given order, neither shuffled nor sampled.
    Stream = "stream";
}

impl Setting {
    /// Returns the setting with this name. Only the federated setting has numbers.
    ///
    /// # Errors
    /// When there is no such setting, when a number is given that the setting does not have, or when
    /// `min_sep` is absent for the federated setting.
    pub fn named(
        name: &str,
        min_sep: Option<usize>,
        max_participations: Option<usize>,
    ) -> std::result::Result<Self, InvalidParameter> {
        let unknown = || {
            let names: Vec<&str> = Self::ALL.iter().map(|(setting, _)| setting.name()).collect();
            InvalidParameter::new("setting", format!("{name:?}"), format!("one of {}", names.join(", ")))
        };
        let found = Self::ALL.iter().find(|(setting, _)| setting.name() == name);
        let setting = found.ok_or_else(unknown)?.0;
        if let Self::Federated { .. } = setting {
            let absent = || InvalidParameter::new("min_sep", "absent", "given with setting federated");
            return Ok(Self::Federated { min_sep: min_sep.ok_or_else(absent)?, max_participations });
        }
        let given = [("min_sep", min_sep), ("max_participations", max_participations)];
        match given.into_iter().find_map(|(name, got)| Some((name, got?))) {
            Some((name, got)) => {
                Err(InvalidParameter::new(name, got, "left out: only setting federated takes it"))
            }
            None => Ok(setting),
        }
    }

    /// Whether batches are sampled where this improves privacy.
    pub fn is_sampled(self) -> bool {
        match self {
            Self::Poisson | Self::BMinSep => true,
            Self::Cyclic | Self::Shuffled | Self::Single | Self::Stream | Self::Federated { .. } => false,
        }
    }

    /// Why batches of this setting are not cut at a maximum size; empty if they can be.
    pub(crate) fn why_not_cut(self) -> &'static str {
        match self {
            Self::Poisson => "",
            Self::BMinSep => {
                "whether an example that is cut from a batch sits out the next steps decides the privacy of b-min-sep \
                 sampling, and no proof covers either; setting poisson takes it"
            }
            Self::Cyclic | Self::Shuffled | Self::Single => {
                "batches of shuffled data have one size, or sizes that differ by one"
            }
            Self::Stream => "batches of a stream have one size",
            Self::Federated { .. } => "batches are formed by the program that runs the plan",
        }
    }

    /// The setting in which independent noise is listed for comparison.
    pub(crate) fn compared(self) -> Option<Self> {
        match self {
            Self::Cyclic | Self::Shuffled | Self::Single => Some(Self::Poisson),
            Self::Poisson | Self::BMinSep => Some(Self::Cyclic),
            Self::Stream | Self::Federated { .. } => None,
        }
    }

    /// The sampler and the schema for `steps` steps with `groups` batches in an epoch. For sampled settings,
    /// they are those of Poisson sampling without amplification.
    pub(crate) fn batches(self, steps: usize, groups: usize) -> Result<(Sampler, Participation)> {
        let cyclic = Sampler::Cyclic { groups };
        if matches!(self, Self::Single | Self::Stream) {
            between("steps", steps, 1, groups, "one epoch's steps, examples / batch_size")?;
        }
        Ok(match self {
            Self::Single => (cyclic, Participation::Single),
            Self::Stream => (Sampler::Stream, Participation::Single),
            Self::Cyclic if steps <= groups => (cyclic, Participation::Single),
            Self::Cyclic => {
                let max_participations = steps.div_ceil(groups);
                (cyclic, Participation::Cyclic { min_sep: groups, max_participations })
            }
            Self::Shuffled if steps <= groups => (Sampler::Shuffled { groups }, Participation::Single),
            Self::Shuffled => {
                (Sampler::Shuffled { groups }, Participation::EachEpoch { epoch_steps: groups })
            }
            Self::Federated { min_sep, max_participations } => {
                between("min_sep", min_sep, 1, steps, "steps")?;
                let most = (steps - 1) / min_sep + 1;
                let max_participations = max_participations.unwrap_or(most);
                (Sampler::External, Participation::MinSep { min_sep, max_participations })
            }
            Self::Poisson | Self::BMinSep => (Sampler::Poisson { groups: 1 }, Participation::FullBatch),
        })
    }
}
