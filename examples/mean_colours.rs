//! A mosaic: each pixel of an image gets the mean colour of its tile. Image, tiles and colours are
//! arrays of `ndarray`. A scatter computes the mean of each tile, and a gather paints the pixels.

use ndarray::{Array2, Array3, ArrayRef2, ArrayRef3, ArrayView2, s};
use ndscatter::{Gather, Reduction, Scatter, ScatterError, TensorView};

const HEIGHT: usize = 24;
const WIDTH: usize = 48;
const TILES: usize = HEIGHT / 3 * (WIDTH / 6);

fn main() -> Result<(), ScatterError> {
    let image = ball();
    let tiles = Array2::from_shape_fn((HEIGHT, WIDTH), |(y, x)| y / 3 * (WIDTH / 6) + x / 6);
    let mosaic = paint(&image, &tiles, TILES)?;
    for (pixels, painted) in image.outer_iter().zip(mosaic.outer_iter()) {
        println!("{}  {}", line(pixels), line(painted));
    }

    // The image may have any strides. Here it is mirrored.
    let mirrored = paint(&image.slice(s![.., ..;-1, ..]), &tiles, TILES)?;
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
) -> Result<Array3<f32>, ScatterError> {
    let mut colours = Array2::zeros((count, 3));
    Scatter::along(0)
        .reduction(Reduction::Mean)
        .include_self(false)
        .in_place(&mut colours, tiles, image.into())?;
    let painted = Gather::along(0).allocate(TensorView::from(&colours), tiles)?;
    let painted = painted.into_ndarray().into_dimensionality();
    Ok(painted.expect("the shape of the image"))
}

/// Returns the image of a red ball: height, width, and three colours from 0 to 1.
fn ball() -> Array3<f32> {
    Array3::from_shape_fn((HEIGHT, WIDTH, 3), |(y, x, colour)| {
        let (y, x) = (y as f32 / 12.0 - 1.0, x as f32 / 24.0 - 1.0);
        let light = (1.0 - x * x - y * y).max(0.0).sqrt() * (1.0 - 0.5 * x);
        if colour == 0 { light } else { light * 0.3 }
    })
}

/// Returns a line of pixels as text. A character shows the red of its pixel.
fn line(pixels: ArrayView2<'_, f32>) -> String {
    let shade = |&red: &f32| match red {
        ..0.1 => ' ',
        ..0.4 => '░',
        ..0.7 => '▒',
        ..1.0 => '▓',
        _ => '█',
    };
    pixels.column(0).iter().map(shade).collect()
}
