//! A mosaic: each pixel of an image gets the mean colour of its tile. Image, tiles and colours are
//! arrays of `ndarray`. A scatter computes the mean of each tile, and a gather paints the pixels.

use ndarray::{Array2, Array3, ArrayD, ArrayRef2, ArrayRef3, s};
use ndscatter::{Gather, Reduction, Scatter, ScatterError, TensorView, TensorViewMut};

const HEIGHT: usize = 24;
const WIDTH: usize = 48;

fn main() -> Result<(), ScatterError> {
    let image = ball();
    let tiles = Array2::from_shape_fn((HEIGHT, WIDTH), |(y, x)| y / 3 * 100 + x / 6);
    let mosaic = paint(&image, &tiles, 800)?;
    for (row, mosaic) in image.outer_iter().zip(mosaic.outer_iter()) {
        let shades = |row: ndarray::ArrayView2<'_, f32>| -> String {
            row.column(0).iter().map(|&red| shade(red)).collect()
        };
        let mosaic = mosaic.into_dimensionality().expect("pixels of 3 colours");
        println!("{}  {}", shades(row), shades(mosaic));
    }

    // A view of any strides: here, the mirror image.
    let mirrored = paint(&image.slice(s![.., ..;-1, ..]), &tiles, 800)?;
    let tile = image.slice(s![..3, WIDTH - 6.., ..]);
    let mean = tile.sum() / 54.0;
    let painted = mirrored.slice(s![0, 0, ..]).mean().expect("3 colours");
    assert!((painted - mean).abs() < 1e-6, "the mean of the last tile");
    Ok(())
}

/// Returns an image in which each pixel has the mean colour of its tile.
fn paint(
    image: &ArrayRef3<f32>,
    tiles: &ArrayRef2<usize>,
    count: usize,
) -> Result<ArrayD<f32>, ScatterError> {
    let mut colours = Array2::zeros((count, 3));
    Scatter::along(0)
        .reduction(Reduction::Mean)
        .include_self(false)
        .in_place(TensorViewMut::try_from(&mut colours)?, tiles, image.into())?;
    let painted = Gather::along(0).allocate(TensorView::from(&colours), tiles)?;
    Ok(painted.into_ndarray())
}

/// Returns the image of a red ball: height, width, and three colours from 0 to 1.
fn ball() -> Array3<f32> {
    Array3::from_shape_fn((HEIGHT, WIDTH, 3), |(y, x, colour)| {
        let (y, x) = (y as f32 / 12.0 - 1.0, x as f32 / 24.0 - 1.0);
        let light = (1.0 - x * x - y * y).max(0.0).sqrt() * (1.0 - 0.5 * x);
        if colour == 0 { light } else { light * 0.3 }
    })
}

fn shade(value: f32) -> char {
    let thresholds = [0.1, 0.4, 0.7, 1.0];
    [' ', '░', '▒', '▓', '█'][thresholds.iter().filter(|&&limit| value > limit).count()]
}
