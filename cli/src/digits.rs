//! The data set of handwritten digits, which is compiled into the program. Without input files, the
//! program adds up the images of each label. `data/digits/README.md` names the source of the data
//! set.

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

/// Returns the expected sums of the images of each label, which numpy has computed. Also returns
/// the path of their file, for messages.
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

/// Number of pixels along each side of an image.
const SIDE: usize = 8;

/// Number of images side by side in the terminal. Five images with `SIDE` pixels per row and two
/// characters per pixel fill 80 columns.
const PICTURES_IN_A_ROW: usize = 5;

/// The characters that draw a pixel, from the lightest to the darkest shade.
const SHADES: [&str; 5] = ["  ", "░░", "▒▒", "▓▓", "██"];

/// Smallest pixel values of the second to the fifth shade, as fractions of the image's largest
/// pixel value.
const STEPS: [f32; 4] = [0.12, 0.35, 0.6, 0.85];

/// Returns a text that draws the images on a terminal of 80 columns.
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

/// Returns the characters that draw the pixels in row `y` of an image.
fn shades(image: &[f32], y: usize) -> impl Iterator<Item = &'static str> {
    let darkest = image.iter().copied().fold(0.0, f32::max);
    image[y * SIDE..][..SIDE].iter().map(move |pixel| {
        let shade = STEPS.iter().filter(|&step| pixel / darkest >= *step);
        SHADES[shade.count()]
    })
}
