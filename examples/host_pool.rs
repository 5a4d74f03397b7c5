//! A host runtime with its own tensors and its own threads. The tensors are bytes with a dtype and
//! a shape known at run time, and strides in bytes. The threads run for the whole program.
//! ndscatter receives views of the tensors and runs on the host's threads. It copies no tensor and
//! starts no thread.

#![expect(
    unsafe_code,
    reason = "long-lived threads borrow a short-lived task; the pool waits for them"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::{mem, thread};

use ndscatter::{AnyView, AnyViewMut, DType, Execution, LayoutBuf, Pool};
use ndscatter::{Reduction, Scatter, ScatterError};

type Job = Box<dyn FnOnce() + Send>;

/// Threads that run jobs until the pool is dropped. Each thread has its own queue.
struct HostPool {
    queues: Vec<mpsc::Sender<Job>>,
    /// Number of tasks that were run.
    tasks: AtomicUsize,
}

impl HostPool {
    fn start(threads: usize) -> Self {
        let queue = |_| {
            let (queue, jobs) = mpsc::channel::<Job>();
            thread::spawn(move || jobs.into_iter().for_each(|job| job()));
            queue
        };
        Self {
            queues: (0..threads).map(queue).collect(),
            tasks: AtomicUsize::new(0),
        }
    }
}

impl Pool for HostPool {
    fn workers(&self) -> Option<usize> {
        Some(self.queues.len())
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        // SAFETY: the reference is used only by the jobs that this call sends. This function
        // returns after each of them has ended or has been dropped: `all_done.recv()` below waits
        // for that.
        let task: &'static (dyn Fn(usize) + Sync) = unsafe { mem::transmute(task) };
        let next = Arc::new(AtomicUsize::new(0));
        let (running, all_done) = mpsc::channel::<()>();
        for queue in &self.queues {
            let (next, running) = (Arc::clone(&next), running.clone());
            // If the thread of a queue has ended, the job is dropped. ndscatter detects tasks that
            // were not run.
            let _ = queue.send(Box::new(move || {
                let take = || Some(next.fetch_add(1, Ordering::Relaxed));
                std::iter::from_fn(take)
                    .take_while(|&index| index < tasks)
                    .for_each(task);
                drop(running);
            }));
        }
        drop(running);
        // No message is ever sent. `recv` returns when every job has dropped its sender: the job
        // has ended, has panicked, or was never run.
        let _ = all_done.recv();
        self.tasks.fetch_add(tasks, Ordering::Relaxed);
    }
}

/// A tensor of the host. Its memory is aligned for elements of any type.
struct HostTensor {
    words: Vec<u64>,
    dtype: DType,
    shape: Vec<usize>,
    byte_strides: Vec<isize>,
}

impl HostTensor {
    fn layout(&self) -> Result<LayoutBuf, ScatterError> {
        LayoutBuf::with_byte_strides(&self.shape, &self.byte_strides, self.dtype)
    }

    fn view<'a>(&'a self, layout: &'a LayoutBuf) -> Result<AnyView<'a>, ScatterError> {
        AnyView::from_bytes(
            bytemuck::cast_slice(&self.words),
            self.dtype,
            layout.as_layout(),
        )
    }

    fn view_mut<'a>(&'a mut self, layout: &'a LayoutBuf) -> Result<AnyViewMut<'a>, ScatterError> {
        let bytes = bytemuck::cast_slice_mut(&mut self.words);
        AnyViewMut::from_bytes(bytes, self.dtype, layout.as_layout())
    }
}

fn main() -> Result<(), ScatterError> {
    let pool = HostPool::start(2);
    const ROWS: usize = 100_000;
    // Rows of 63 floats. Each row begins on a new cache line.
    let mut table = HostTensor {
        words: vec![0; ROWS * 32],
        dtype: DType::F32,
        shape: vec![ROWS, 63],
        byte_strides: vec![256, 4],
    };
    let rows = HostTensor {
        words: (0..ROWS as u64)
            .map(|number| number * 7919 % 50_000)
            .collect(),
        dtype: DType::U64,
        shape: vec![ROWS],
        byte_strides: vec![8],
    };
    // One row of ones stands for all rows: its stride is 0.
    let updates = HostTensor {
        words: vec![u64::from(1.0_f32.to_bits()) << 32 | u64::from(1.0_f32.to_bits()); 32],
        dtype: DType::F32,
        shape: vec![ROWS, 63],
        byte_strides: vec![0, 4],
    };

    let (table_layout, rows_layout, updates_layout) =
        (table.layout()?, rows.layout()?, updates.layout()?);
    let add = Scatter::along(0)
        .reduction(Reduction::Add)
        .execution(Execution::new().pool(&pool));
    for _step in 0..3 {
        add.in_place(
            table.view_mut(&table_layout)?,
            rows.view(&rows_layout)?,
            updates.view(&updates_layout)?,
        )?;
    }

    // Each row below 50,000 occurs twice per step. The padding is never written.
    let floats: &[f32] = bytemuck::cast_slice(&table.words);
    for (row, floats) in floats.chunks_exact(64).enumerate() {
        let expected = if row < 50_000 { 6.0 } else { 0.0 };
        assert!(
            floats[..63].iter().all(|&float| float == expected),
            "row {row}"
        );
        assert_eq!(floats[63], 0.0, "padding of row {row}");
    }
    let tasks = pool.tasks.into_inner();
    println!("three calls ran {tasks} tasks on the threads of the host");
    assert_ne!(tasks, 0, "calls of this size are divided");
    Ok(())
}
