//! The words of a figure, read back from its SVG.

/// A word and where it stands, in the file's pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    pub text: String,
    pub x: f64,
    pub y: f64,
    pub anchor: String,
}

pub fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag[start..].split('"').next()
}

pub fn words(svg: &str) -> Vec<Word> {
    let elements = svg.split("<text").skip(1);
    elements
        .map(|element| {
            let (tag, rest) = element.split_once('>').unwrap();
            let number = |name| attribute(tag, name).unwrap().parse().unwrap();
            Word {
                text: rest.split("</text>").next().unwrap().trim().to_string(),
                x: number("x"),
                y: number("y"),
                anchor: attribute(tag, "text-anchor").unwrap().to_string(),
            }
        })
        .collect()
}

/// The ticks of a chart: numbers and places along the horizontal and the vertical axis. Titles must not be
/// numbers.
pub fn ticks(svg: &str) -> [Vec<(f64, f64)>; 2] {
    let all = words(svg);
    let of = |anchor: &str, place: fn(&Word) -> f64| {
        let found = all.iter().filter(|word| word.anchor == anchor);
        found.filter_map(|word| Some((word.text.parse().ok()?, place(word)))).collect()
    };
    [of("middle", |word| word.x), of("end", |word| word.y)]
}
