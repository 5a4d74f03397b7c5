//! A layer of a graph network: every edge carries the features of its first node
//! to its second one, where messages are added up, or the largest is kept.
//! A gather of rows, and two scatters of what it gives.

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
    // Nobody sends to node 0.
    let from = [0_u32, 1, 2, 3, 0, 4];
    let to = [1_u32, 2, 1, 4, 1, 2];

    // One message for each edge.
    let nodes = TensorView::contiguous(&features, &[NODES, WIDTH])?;
    let messages = Gather::along(0).allocate(nodes, TensorView::from(&from))?;
    assert_eq!(messages.shape(), [from.len(), WIDTH], "a row each");

    // Edges that share a node are applied in their order, whatever the threads.
    let mut sums = [0.0; NODES * WIDTH];
    Scatter::along(0).reduction(Reduction::Add).in_place(
        TensorViewMut::contiguous(&mut sums, &[NODES, WIDTH])?,
        TensorView::from(&to),
        messages.view(),
    )?;
    // Without the value that is there, the zeros of nodes with messages do not
    // take part; those of other nodes stay.
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
