//! A layer of a graph network. Each edge carries the features of its source node to its target
//! node. The target adds its messages, or keeps the largest one. The layer is one gather of rows
//! and two scatters of the gathered rows.

use ndscatter::{Gather, Reduction, Scatter, ScatterError, TensorView, TensorViewMut};

const NODES: usize = 5;
const WIDTH: usize = 3;

fn main() -> Result<(), ScatterError> {
    #[rustfmt::skip]
    let features = [
        1.0_f32, 0.5, -1.0,
        2.0, 0.25, -2.0,
        3.0, 0.125, -3.0,
        4.0, 8.0, 4.0,
        5.0, 16.0, -5.0,
    ];
    // No edge ends at node 0.
    let from = [0_u32, 1, 2, 3, 0, 4];
    let to = [1_u32, 2, 1, 4, 1, 2];

    // One message for each edge.
    let nodes = TensorView::contiguous(&features, &[NODES, WIDTH])?;
    let messages = Gather::along(0).allocate(nodes, TensorView::from(&from))?;
    assert_eq!(messages.shape(), [from.len(), WIDTH], "one row per edge");

    // Messages to the same node are added in the order of edges, at any number of threads.
    let mut sums = [0.0; NODES * WIDTH];
    Scatter::along(0).reduction(Reduction::Add).in_place(
        TensorViewMut::contiguous(&mut sums, &[NODES, WIDTH])?,
        TensorView::from(&to),
        messages.view(),
    )?;
    // `include_self(false)` leaves the existing zeros out of the maxima of nodes with messages.
    // Nodes without messages keep their zeros.
    let zeros = TensorView::splat(&0.0, &[NODES, WIDTH])?;
    let largest = Scatter::along(0)
        .reduction(Reduction::Max)
        .include_self(false)
        .allocate(zeros, TensorView::from(&to), messages.view())?;

    for node in 0..NODES {
        let row = node * WIDTH..(node + 1) * WIDTH;
        println!(
            "node {node}: sum {:?}, largest {:?}",
            &sums[row.clone()],
            &largest[row]
        );
    }
    assert_eq!(sums[..6], [0.0, 0.0, 0.0, 5.0, 1.125, -5.0], "sums");
    assert_eq!(largest[3..9], [3.0, 0.5, -1.0, 5.0, 16.0, -2.0], "maxima");
    Ok(())
}
