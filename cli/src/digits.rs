//! The data set of handwritten digits that is compiled into the program. The program adds up the
//! images of each label. `data/digits/README.md` names the source of the data set.

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

/// Parses a built-in `.npy` file of the data set of handwritten digits (`data/digits`).
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

/// Returns the sums of the images of each label, computed by numpy, with the path of their file
/// for messages.
pub(crate) fn expected() -> Result<(PathBuf, Array), Failure> {
    let expected = digits_file!("expected.npy")?;
    Ok(("cli/data/digits/expected.npy".into(), expected))
}

fn parse(name: &str, bytes: &[u8]) -> Result<Array, Failure> {
    Array::read(bytes).map_err(|source| Failure::Read {
        path: name.into(),
        source,
    })
}

/// Pixels along each side of an image.
const SIDE: usize = 8;

/// Images per line of the terminal. Five images of `SIDE` pixels, at two characters per pixel, fill
/// 80 columns.
const PICTURES_IN_A_ROW: usize = 5;

/// The characters of a pixel, from white to black.
const SHADES: [&str; 5] = ["  ", "░░", "▒▒", "▓▓", "██"];

/// Lower bounds of the shades after the first, as fractions of the value of the image's darkest
/// pixel.
const STEPS: [f32; 4] = [0.12, 0.35, 0.6, 0.85];

/// Draws the images for a terminal of 80 columns.
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

/// Returns the shades of the pixels in row `y` of an image.
fn shades(image: &[f32], y: usize) -> impl Iterator<Item = &'static str> {
    let darkest = image.iter().copied().fold(0.0, f32::max);
    image[y * SIDE..][..SIDE].iter().map(move |pixel| {
        let shade = STEPS.iter().filter(|&step| pixel / darkest >= *step);
        SHADES[shade.count()]
    })
}
