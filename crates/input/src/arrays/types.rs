//! Types of an array's values.

use std::fmt;

/// The kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Floating-point numbers.
    Real,
    /// Whole numbers.
    Whole,
    /// Truth values.
    Truth,
    /// Text.
    Text,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "floating-point numbers",
            Self::Whole => "whole numbers",
            Self::Truth => "truth values",
            Self::Text => "text",
        })
    }
}

/// The type of an array's values, which all have the same number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Type {
    kind: Kind,
    /// Bytes of a value.
    pub(super) width: usize,
    is_big_endian: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Real,
    Signed,
    Unsigned,
    Truth,
    /// UTF-8, padded with zeros.
    Bytes,
    /// Code points of 4 bytes, padded with zeros.
    CodePoints,
}

impl Type {
    /// The type that NumPy writes as `text`, such as `<f8`: the order of bytes, a letter and a number.
    ///
    /// # Errors
    /// The name of a type that is not read.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let other = || match text.trim_start_matches(['<', '>', '|', '=']) {
            kind if kind.starts_with('O') => "of Python objects, which could run code".to_string(),
            kind if kind.starts_with('c') => "of complex numbers".into(),
            kind if kind.starts_with(['M', 'm']) => "of dates or durations".into(),
            _ => format!("of the type {text:?}"),
        };
        let known = || {
            let (order, rest) = text.split_at_checked(1)?;
            let (letter, number) = rest.split_at_checked(1)?;
            let number: usize = number.parse().ok().filter(|_| number.bytes().all(|x| x.is_ascii_digit()))?;
            let is_length = |lengths: &[usize]| lengths.contains(&number);
            let (kind, width) = match letter {
                "f" if is_length(&[2, 4, 8]) => (Kind::Real, number),
                "i" if is_length(&[1, 2, 4, 8]) => (Kind::Signed, number),
                "u" if is_length(&[1, 2, 4, 8]) => (Kind::Unsigned, number),
                "b" if number == 1 => (Kind::Truth, 1),
                "S" => (Kind::Bytes, number),
                "U" => (Kind::CodePoints, number.checked_mul(4)?),
                _ => return None,
            };
            ["<", ">", "|"].contains(&order).then_some(Self { kind, width, is_big_endian: order == ">" })
        };
        known().ok_or_else(other)
    }

    pub(super) fn class(self) -> Class {
        match self.kind {
            Kind::Real => Class::Real,
            Kind::Signed | Kind::Unsigned => Class::Whole,
            Kind::Truth => Class::Truth,
            Kind::Bytes | Kind::CodePoints => Class::Text,
        }
    }

    /// The value of a number or truth value in `bytes`, exact up to 64 bits.
    pub(super) fn number(self, bytes: &[u8]) -> Number {
        let mut little = [0; 8];
        little[..bytes.len()].copy_from_slice(bytes);
        if self.is_big_endian {
            little[..bytes.len()].reverse();
        }
        let bits = u64::from_le_bytes(little);
        match (self.kind, bytes.len()) {
            (Kind::Real, 2) => Number::Real(half(bits as u16)),
            (Kind::Real, 4) => Number::Real(f64::from(f32::from_bits(bits as u32))),
            (Kind::Real, _) => Number::Real(f64::from_bits(bits)),
            (Kind::Signed, width) => {
                // The sign bit of a shorter number, moved to the top and back.
                let shift = 64 - 8 * width as u32;
                Number::Whole(i128::from(((bits << shift) as i64) >> shift))
            }
            _ => Number::Whole(i128::from(bits)),
        }
    }

    /// Appends the text in `bytes` to `room`; `None` if it is not text.
    pub(super) fn text(self, bytes: &[u8], room: &mut String) -> Option<()> {
        if self.kind == Kind::Bytes {
            let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            room.push_str(std::str::from_utf8(&bytes[..end]).ok()?);
            return Some(());
        }
        let start = room.len();
        for four in bytes.chunks_exact(4) {
            let four = four.try_into().expect("4 bytes");
            let code = if self.is_big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) };
            room.push(char::from_u32(code)?);
        }
        room.truncate(start + room[start..].trim_end_matches('\0').len());
        Some(())
    }

    /// The number from which on neighbouring numbers of this type may be more than 1 apart.
    pub(super) fn exact_below(self) -> f64 {
        match self.width {
            2 => 2048.0,
            4 => f64::from(1 << 24),
            _ => f64::INFINITY,
        }
    }
}

/// A number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Real(f64),
    Whole(i128),
}

/// A number of half precision: a sign, 5 bits of exponent and 10 bits of fraction.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let size = match (exponent, fraction) {
        (0, _) => fraction * 2f64.powi(-24),
        (0x1f, 0.0) => f64::INFINITY,
        (0x1f, _) => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}
