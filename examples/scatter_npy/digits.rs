//! The data that the example carries: handwritten digits, to be added up by
//! label. `examples/data/digits/README.md` says where they come from.

use std::path::PathBuf;

use crate::Failure;
use crate::array::Array;
use crate::job::Inputs;

pub(crate) const TITLE: &str =
    "1797 handwritten digits of 8x8 pixels, each added into the row of its label\n";

pub(crate) const ATTRIBUTION: &str = "\
Digits: E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits (1998),
UCI Machine Learning Repository, https://doi.org/10.24432/C50P49, CC BY 4.0
";

/// A file of the digits, compiled into the program.
macro_rules! digits_file {
    ($name:literal) => {
        parse(
            $name,
            include_bytes!(concat!("../data/digits/", $name)).as_slice(),
        )
    };
}

pub(crate) fn inputs() -> Result<Inputs, Failure> {
    Ok(Inputs {
        data: digits_file!("data.npy")?,
        indices: digits_file!("indices.npy")?,
        updates: Some(digits_file!("updates.npy")?),
        names: "the digits".to_owned(),
    })
}

/// The sums as numpy made them, and what to call them.
pub(crate) fn expected() -> Result<(PathBuf, Array), Failure> {
    let expected = digits_file!("expected.npy")?;
    Ok(("examples/data/digits/expected.npy".into(), expected))
}

fn parse(name: &str, bytes: &[u8]) -> Result<Array, Failure> {
    Array::read(bytes).map_err(|source| Failure::Read {
        path: name.into(),
        source,
    })
}

const SIDE: usize = 8;

/// Five pictures of `SIDE` pixels, two characters a pixel, fill 80 columns.
const PICTURES_IN_A_ROW: usize = 5;

/// A pixel, from white to black.
const SHADES: [&str; 5] = ["  ", "░░", "▒▒", "▓▓", "██"];

/// The parts of the darkest pixel from which on the next shade is taken.
const STEPS: [f32; 4] = [0.12, 0.35, 0.6, 0.85];

/// The images, for a terminal of 80 columns.
pub(crate) fn pictures(images: &Array) -> String {
    let pixels = images.as_slice::<f32>().unwrap_or_default();
    let images: Vec<&[f32]> = pixels.chunks_exact(SIDE * SIDE).collect();
    let mut text = String::new();
    for row in images.chunks(PICTURES_IN_A_ROW) {
        for y in 0..SIDE {
            let line: String = row.iter().flat_map(|image| shades(image, y)).collect();
            text += line.trim_end();
            text += "\n";
        }
        text += "\n";
    }
    text
}

/// Line `y` of an image.
fn shades(image: &[f32], y: usize) -> impl Iterator<Item = &'static str> {
    let darkest = image.iter().copied().fold(0.0, f32::max);
    image[y * SIDE..][..SIDE].iter().map(move |pixel| {
        let shade = STEPS.iter().filter(|&step| pixel / darkest >= *step);
        SHADES[shade.count()]
    })
}
