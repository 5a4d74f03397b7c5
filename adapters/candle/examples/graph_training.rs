//! Trains a graph network whose nodes take the maximum of the messages of their neighbours.
//!
//! ```sh
//! cargo run --release -p ndscatter-candle --example graph_training
//! ```
//!
//! The graph has two groups of nodes. Most edges join nodes of one group. The network sees a noisy
//! feature of each node, and the group of one node in five. It learns the groups of the others.
//! candle has no maximum over neighbours. The layer is a gather and a scatter of ndscatter, with
//! gradients.

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::loss::cross_entropy;
use candle_nn::{Optimizer, SGD};
use ndscatter_candle::{GatherOp, Reduction, ScatterOp};

const NODES: u32 = 2000;
const EDGES: usize = 20_000;
const WIDTH: usize = 16;

/// A layer: each node combines its own state with the maximum over its neighbours.
struct MaxLayer {
    own: Var,
    neighbours: Var,
}

impl MaxLayer {
    fn new(from: usize, to: usize, device: &Device) -> Result<Self> {
        let deviation = (1. / from as f64).sqrt();
        Ok(Self {
            own: Var::randn_f64(0., deviation, (from, to), DType::F32, device)?,
            neighbours: Var::randn_f64(0., deviation, (from, to), DType::F32, device)?,
        })
    }

    /// `sources[i]` sends a message to `targets[i]`.
    fn forward(&self, states: &Tensor, sources: &Tensor, targets: &Tensor) -> Result<Tensor> {
        let messages = GatherOp::along(0).apply(states, sources)?;
        // Without the existing value, a node without neighbours keeps its zeros.
        let largest = ScatterOp::along(0)
            .reduction(Reduction::Max)
            .include_self(false);
        let received = largest.apply(&states.zeros_like()?, targets, &messages)?;
        states.matmul(&self.own)? + received.matmul(&self.neighbours)?
    }
}

fn main() -> Result<()> {
    let device = &Device::Cpu;
    let mut random = Random(1);
    let group = |node: u32| node % 2;

    // Nine of ten edges stay in their group. Messages go both ways.
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..EDGES {
        let a = random.below(NODES);
        let other = u32::from(random.below(10) == 0);
        let b = random.below(NODES / 2) * 2 + (group(a) + other) % 2;
        sources.extend([a, b]);
        targets.extend([b, a]);
    }
    let (sources, targets) = (Tensor::new(sources, device)?, Tensor::new(targets, device)?);

    let groups = Tensor::new((0..NODES).map(group).collect::<Vec<_>>(), device)?;
    let signal = (groups.to_dtype(DType::F32)? - 0.5)?.unsqueeze(1)?;
    let noise = (0..NODES as usize * WIDTH).map(|_| random.below(2001) as f32 / 1000. - 1.);
    let noise = Tensor::from_vec(noise.collect(), (NODES as usize, WIDTH), device)?;
    let features = noise.broadcast_add(&(signal * 0.3)?)?;
    let known = Tensor::arange_step(0_u32, NODES, 10, device)?;
    let known = Tensor::cat(&[&known, &(&known + 1.)?], 0)?;
    let known_groups = groups.index_select(&known, 0)?;

    let layers = [
        MaxLayer::new(WIDTH, WIDTH, device)?,
        MaxLayer::new(WIDTH, 2, device)?,
    ];
    let variables = layers
        .iter()
        .flat_map(|layer| [layer.own.clone(), layer.neighbours.clone()]);
    let mut optimizer = SGD::new(variables.collect(), 0.1)?;
    for step in 0..=100 {
        let hidden = layers[0].forward(&features, &sources, &targets)?.relu()?;
        let scores = layers[1].forward(&hidden, &sources, &targets)?;
        let loss = cross_entropy(&GatherOp::along(0).apply(&scores, &known)?, &known_groups)?;
        if step % 20 == 0 {
            let right = scores
                .argmax(1)?
                .eq(&groups)?
                .to_dtype(DType::F32)?
                .mean_all()?;
            let (loss, right) = (loss.to_scalar::<f32>()?, right.to_scalar::<f32>()? * 100.);
            println!("step {step:3}: loss {loss:.3}, {right:.0} % of the nodes in their group");
        }
        optimizer.backward_step(&loss)?;
    }
    Ok(())
}

/// A generator of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) % u64::from(limit)) as u32
    }
}
