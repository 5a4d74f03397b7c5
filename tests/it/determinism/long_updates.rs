//! More than 512 MiB of updates on few workers. The crate then makes few partitions, which the test
//! sees by the scratch memory.

use ndscatter::{Layout, Reduction, Schedule, TensorView, TensorViewMut};

use crate::common::Tensor;
use crate::common::api::{DType, Indices, Methods, Options, Request};
use crate::common::layouts::{Arrangement, Strided};
use crate::common::operators::Operator;
use crate::common::pools::rayon_pool;
use crate::common::random::Random;

const ROWS: usize = 1500;
const WIDTH: usize = 16 * 1024;
const TUPLES: usize = 33_000;

/// Bytes in which a task gathers 32 entries of a partition: destination numbers and positions.
const GATHERED_BYTES: usize = 8 * 32;

#[test]
fn few_partitions_on_few_workers() {
    let mut random = Random::new(8);
    let rows: Vec<usize> = (0..TUPLES).map(|_| random.below(ROWS)).collect();
    let mut counts = [0_u8; ROWS];
    for &row in &rows {
        counts[row] = counts[row].wrapping_add(1);
    }
    let indices = rows.iter().map(|&row| i64::try_from(row).expect("a row"));
    let indices = Tensor::new(&[TUPLES, 1], indices.collect());
    let indices = Strided::new(&indices, Arrangement::Contiguous, 0, 0);
    let indices: &dyn Indices = &indices;
    // All updates are 1, so each sum is a count.
    let updates = vec![1_u8; TUPLES * WIDTH];
    for workers in [2, 3, 8] {
        let forced = Some(Schedule::ByPartition);
        let request = Request::new(Reduction::Add).schedule(forced);
        let request = request.pool(rayon_pool(workers));
        let options = Options::new(Operator::Nd, request);
        let plan = indices.plan(&options, Layout::contiguous(&[ROWS, WIDTH]));
        let explained = options.explain(&plan.expect("valid indices"), DType::U8, true);
        let explained = explained.expect("a reduction of the type");
        assert_eq!(explained.schedule(), Schedule::ByPartition, "{workers}");
        let gathered = (explained.scratch_bytes() - TUPLES * 8) / workers;
        let are_few = gathered < 16 * GATHERED_BYTES;
        assert_eq!(are_few, workers < 4, "{gathered} bytes of a task");
        let mut data = vec![0_u8; ROWS * WIDTH];
        let view = TensorViewMut::contiguous(&mut data, &[ROWS, WIDTH]).expect("data");
        let updates = TensorView::contiguous(&updates, &[TUPLES, WIDTH]).expect("updates");
        indices
            .in_place(&options, view, updates)
            .expect("a valid call");
        let are_counted = |(row, count): (&[u8], &u8)| row.iter().all(|value| value == count);
        let is_right = data.chunks(WIDTH).zip(&counts).all(are_counted);
        assert!(is_right, "{workers} workers");
    }
}
