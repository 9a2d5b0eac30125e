//! Figures as SVG.

use std::fmt::Display;

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::failure::{Failure, Result};

/// A named curve.
pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Curves over a logarithmic horizontal axis.
pub struct Panel<'a> {
    pub title: String,
    pub horizontal: &'a str,
    pub curves: Vec<Curve>,
    /// Whether the vertical axis is logarithmic as well.
    pub logarithmic: bool,
}

/// A matrix drawn as a map of its magnitudes, and its size in cells.
pub struct HeatMap {
    pub title: String,
    /// Row by row.
    pub cells: Vec<Vec<f64>>,
}

const PANEL: (u32, u32) = (920, 440);
/// Where a panel's curves end and their names begin.
const LEGEND: u32 = 680;
/// Colours that are told apart by people who see them differently (Okabe and Ito).
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(150, 150, 150),
];

fn failed(error: impl Display) -> Failure {
    Failure::other(format!("the figure could not be drawn: {error}"))
}

/// Panels one below the other.
pub fn panels(panels: &[Panel]) -> Result<String> {
    let mut svg = String::new();
    {
        let root =
            SVGBackend::with_string(&mut svg, (PANEL.0, PANEL.1 * panels.len() as u32)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        for (area, panel) in root.split_evenly((panels.len(), 1)).iter().zip(panels) {
            draw_panel(area, panel)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_panel(area: &Area, panel: &Panel) -> Result<()> {
    let points = || panel.curves.iter().flat_map(|curve| &curve.points).filter(|(_, y)| y.is_finite());
    let range = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let low = points().map(of).fold(f64::INFINITY, f64::min);
        let high = points().map(of).fold(f64::NEG_INFINITY, f64::max);
        if low < high { low..high } else { 0.5 * low..2.0 * high + 1e-9 }
    };
    let (x, y) = (range(&|p| p.0), range(&|p| p.1));
    let (area, legend) = area.split_horizontally(LEGEND);
    draw_legend(&legend, &panel.curves)?;
    let mut builder = ChartBuilder::on(&area);
    builder.margin(16).x_label_area_size(40).y_label_area_size(56).caption(&panel.title, ("sans-serif", 18));
    if panel.logarithmic {
        let y = 0.9 * y.start..1.1 * y.end;
        let mut chart = builder.build_cartesian_2d(x.log_scale(), y.log_scale()).map_err(failed)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(panel.horizontal)
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .light_line_style(WHITE);
        mesh.draw().map_err(failed)?;
        draw_curves(&mut chart, panel)
    } else {
        let pad = 0.05 * (y.end - y.start);
        let y = y.start.min(0.0)..y.end + pad;
        let mut chart = builder.build_cartesian_2d(x.log_scale(), y).map_err(failed)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(panel.horizontal)
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .light_line_style(WHITE);
        mesh.draw().map_err(failed)?;
        draw_curves(&mut chart, panel)
    }
}

/// A tick's number without the last digits of rounding.
fn tick(x: &f64) -> String {
    format!("{x:.3e}").parse().map_or_else(|_| x.to_string(), |rounded: f64| rounded.to_string())
}

/// The look of curve `i`: colours first, then hollow marks.
fn look(i: usize) -> (RGBColor, bool) {
    (COLORS[i % COLORS.len()], (i / COLORS.len()).is_multiple_of(2))
}

fn draw_legend(area: &Area, curves: &[Curve]) -> Result<()> {
    for (i, curve) in curves.iter().enumerate() {
        let (color, filled) = look(i);
        let y = 60 + 18 * i as i32;
        area.draw(&PathElement::new([(0, y), (24, y)], color.stroke_width(2))).map_err(failed)?;
        area.draw(&mark((12, y), color, filled)).map_err(failed)?;
        let text = Text::new(curve.name.clone(), (32, y - 6), ("sans-serif", 13));
        area.draw(&text).map_err(failed)?;
    }
    Ok(())
}

fn mark<C>(at: C, color: RGBColor, filled: bool) -> Circle<C, i32> {
    Circle::new(at, 3, if filled { color.filled() } else { color.stroke_width(1) })
}

fn draw_curves<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    panel: &Panel,
) -> Result<()>
where
    X: plotters::coord::ranged1d::Ranged<ValueType = f64>,
    Y: plotters::coord::ranged1d::Ranged<ValueType = f64>,
{
    for (i, curve) in panel.curves.iter().enumerate() {
        let (color, filled) = look(i);
        let points = || curve.points.iter().copied().filter(|(_, y)| y.is_finite());
        chart.draw_series(LineSeries::new(points(), color.stroke_width(2))).map_err(failed)?;
        chart.draw_series(points().map(|point| mark(point, color, filled))).map_err(failed)?;
    }
    Ok(())
}

/// Heat maps side by side in the first row, then panels of curves.
pub fn maps_and_curves(maps: &[HeatMap], curves: &[Curves]) -> Result<String> {
    let columns = maps.len().max(curves.len());
    let mut svg = String::new();
    {
        let size = (420 * columns as u32, 840);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let areas = root.split_evenly((2, columns));
        for (area, map) in areas.iter().zip(maps) {
            draw_map(area, map)?;
        }
        for (area, curves) in areas[columns..].iter().zip(curves) {
            draw_linear(area, curves)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

/// Values by index, on linear axes.
pub struct Curves {
    pub title: String,
    pub values: Vec<f64>,
}

fn draw_map(area: &Area, map: &HeatMap) -> Result<()> {
    let (height, width) = (map.cells.len(), map.cells[0].len());
    let largest = map.cells.iter().flatten().fold(0.0, |m: f64, x| m.max(x.abs()));
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .caption(&map.title, ("sans-serif", 16))
        .x_label_area_size(24)
        .y_label_area_size(32)
        .build_cartesian_2d(0.0..width as f64, height as f64..0.0)
        .map_err(failed)?;
    chart.configure_mesh().disable_mesh().draw().map_err(failed)?;
    let cells = map.cells.iter().enumerate().flat_map(|(i, row)| {
        row.iter().enumerate().filter(|(_, x)| **x != 0.0).map(move |(j, x)| {
            let corners = [(j as f64, i as f64), (j as f64 + 1.0, i as f64 + 1.0)];
            Rectangle::new(corners, shade(*x, largest).filled())
        })
    });
    chart.draw_series(cells).map_err(failed)?;
    Ok(())
}

/// Blue above zero, orange below; the square root of the magnitude, so that small entries show.
fn shade(x: f64, largest: f64) -> RGBColor {
    let strength = (x.abs() / largest).sqrt();
    let base = if x >= 0.0 { (0.0, 90.0, 160.0) } else { (213.0, 94.0, 0.0) };
    let mix = |channel: f64| (255.0 + (channel - 255.0) * strength).round() as u8;
    RGBColor(mix(base.0), mix(base.1), mix(base.2))
}

fn draw_linear(area: &Area, curves: &Curves) -> Result<()> {
    let low = curves.values.iter().copied().fold(0.0, f64::min);
    let high = curves.values.iter().copied().fold(0.0, f64::max);
    let pad = 0.05 * (high - low).max(1e-9);
    let horizontal: std::ops::Range<f64> = 0.0..(curves.values.len() as f64 - 1.0).max(1.0);
    let mut chart: ChartContext<SVGBackend, Cartesian2d<RangedCoordf64, RangedCoordf64>> =
        ChartBuilder::on(area)
            .margin(16)
            .caption(&curves.title, ("sans-serif", 16))
            .x_label_area_size(32)
            .y_label_area_size(48)
            .build_cartesian_2d(horizontal, low - pad..high + pad)
            .map_err(failed)?;
    chart.configure_mesh().light_line_style(WHITE).draw().map_err(failed)?;
    let points = || curves.values.iter().enumerate().map(|(i, &x)| (i as f64, x));
    chart.draw_series(LineSeries::new(points(), COLORS[0].stroke_width(2))).map_err(failed)?;
    if curves.values.len() <= 64 {
        chart.draw_series(points().map(|point| Circle::new(point, 2, COLORS[0].filled()))).map_err(failed)?;
    }
    Ok(())
}
