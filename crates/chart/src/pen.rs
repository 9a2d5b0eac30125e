//! Lines, marks and text on an area, in the page's pixels.

use plotters::coord::Shift;
use plotters::element::{Circle, Drawable, PathElement, PointCollection, Rectangle};
use plotters::prelude::{DrawingArea, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, RGBColor, TextStyle};

use crate::error::{Result, failed};

/// Library pixels per pixel of the page: the library rounds to whole pixels, and with several of them curves
/// stay smooth.
pub(crate) const PIXELS: f64 = 4.0;
/// Factor by which the library divides sizes of text.
const LIBRARY: f64 = 1.24;
const FONT: &str = "system-ui, sans-serif";

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Converts pixels to the library's units.
pub(crate) fn px(pixels: f64) -> i32 {
    (pixels * PIXELS).round() as i32
}

/// A line width in the library's pixels.
pub(crate) fn width(pixels: f64) -> u32 {
    px(pixels).unsigned_abs()
}

/// The style of text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    pub(crate) size: f64,
    pub(crate) bold: bool,
    pub(crate) centered: bool,
}

/// The style of text of this many pixels.
pub(crate) fn style(size: f64, bold: bool, color: RGBColor) -> TextStyle<'static> {
    let weight = if bold { FontStyle::Bold } else { FontStyle::Normal };
    FontDesc::new(FontFamily::Name(FONT), size * LIBRARY * PIXELS, weight).color(&color)
}

/// A place to draw on, with its size in the page's pixels.
pub(crate) struct Pen<'a, 'b> {
    pub(crate) area: &'a Area<'b>,
}

impl<'b> Pen<'_, 'b> {
    pub(crate) fn element<E>(&self, element: E) -> Result<()>
    where
        for<'e> &'e E: PointCollection<'e, (i32, i32)>,
        E: Drawable<SVGBackend<'b>>,
    {
        self.area.draw(&element).map_err(failed)
    }

    /// One line of text whose middle is at the height `y`.
    pub(crate) fn text(&self, text: &str, (x, y): (f64, f64), words: Words, color: RGBColor) -> Result<()> {
        let across = if words.centered { HPos::Center } else { HPos::Left };
        let style = style(words.size, words.bold, color).pos(Pos::new(across, VPos::Center));
        self.area.draw_text(text, &style, (px(x), px(y))).map_err(failed)
    }

    pub(crate) fn line(&self, points: [(f64, f64); 2], thickness: f64, color: RGBColor) -> Result<()> {
        self.element(PathElement::new(
            points.map(|(x, y)| (px(x), px(y))),
            color.stroke_width(width(thickness)),
        ))
    }

    pub(crate) fn rectangle(&self, corners: [(f64, f64); 2], color: &impl Color) -> Result<()> {
        self.element(Rectangle::new(corners.map(|(x, y)| (px(x), px(y))), color.filled()))
    }

    pub(crate) fn mark(&self, (x, y): (f64, f64), look: (RGBColor, bool)) -> Result<()> {
        self.element(mark((px(x), px(y)), look))
    }
}

/// A mark, filled or hollow.
pub(crate) fn mark<C>(at: C, (color, filled): (RGBColor, bool)) -> Circle<C, i32> {
    let style = if filled { color.filled() } else { color.stroke_width(width(1.5)) };
    Circle::new(at, px(if filled { 2.75 } else { 4.25 }), style)
}
