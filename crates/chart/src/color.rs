//! Colours for light backgrounds, and their replacements on dark screens.

use std::fmt::Write;

use plotters::style::RGBColor;

/// Number of distinct series colours.
pub const SERIES: usize = 8;

/// Colours on a light and a dark background that people with colour blindness can distinguish (Okabe and
/// Ito).
const PALETTE: [(u32, u32); SERIES] = [
    (0x0072B2, 0x56A8E8),
    (0xD55E00, 0xFF8A4C),
    (0x009E73, 0x34D0A0),
    (0xB8578F, 0xE79CC6),
    (0x3AA0DC, 0xA5DBFF),
    (0xC98A00, 0xFFC65C),
    (0x6B4FBB, 0xB4A0F5),
    (0x6F6A60, 0xB8B2A6),
];
/// Text, and lines that belong to no series.
const INK_PAIR: (u32, u32) = (0x4B5563, 0x9AA4B2);
/// Axes and the lines behind them.
const GRID_PAIR: (u32, u32) = (0xDFE3E8, 0x2A303A);

pub(crate) const INK: RGBColor = rgb(INK_PAIR.0);
pub(crate) const GRID: RGBColor = rgb(GRID_PAIR.0);

const fn rgb(code: u32) -> RGBColor {
    RGBColor((code >> 16) as u8, (code >> 8) as u8, code as u8)
}

/// The colour of series `i`.
pub(crate) fn of_series(i: usize) -> RGBColor {
    rgb(PALETTE[i % SERIES].0)
}

/// A style sheet for a page with figures of the class `chart`: `--series-0` to `--series-7`, `--ink-0` (text)
/// and `--ink-1` (grid) are the colours of the reader's theme, which figures use.
///
/// ```
/// let css = antinoise_chart::theme();
/// assert!(css.contains("prefers-color-scheme: dark") && css.contains("--series-7"));
/// ```
pub fn theme() -> String {
    let named: Vec<(String, (u32, u32))> = (0..).map(|i| format!("--series-{i}")).zip(PALETTE).collect();
    let inks = [("--ink-0".to_string(), INK_PAIR), ("--ink-1".to_string(), GRID_PAIR)];
    let all: Vec<(String, (u32, u32))> = named.into_iter().chain(inks).collect();
    let variables = |of: fn(&(u32, u32)) -> u32| -> String {
        all.iter().fold(String::new(), |mut text, (name, pair)| {
            let _ = write!(text, " {name}: #{:06x};", of(pair));
            text
        })
    };
    let mut css = format!(
        ":root {{{} }}\n@media (prefers-color-scheme: dark) {{ :root {{{} }} }}\n",
        variables(|pair| pair.0),
        variables(|pair| pair.1)
    );
    for (name, (light, _)) in &all {
        for what in ["stroke", "fill"] {
            let _ = writeln!(css, ".chart [{what}=\"#{light:06X}\"] {{ {what}: var({name}); }}");
        }
    }
    css
}
