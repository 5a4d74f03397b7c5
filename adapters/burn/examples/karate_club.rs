//! Trains a graph network with burn's autodiff. The network predicts which members of a karate club
//! stayed with the trainer when the club split, from the friendships of its 34 members (Zachary,
//! 1977). Training knows the sides of two members: the trainer (0) and the president (33).
//!
//! Each layer replaces the vector of a member by the mean of this vector and those of the friends. The
//! mean is one call of `nd_scatter`, and burn's backward pass computes its gradient.
//!
//! Run it with `cargo run --release -p ndscatter-burn --example karate_club`.

use burn_tensor::activation::{log_softmax, relu};
use burn_tensor::{Device, Distribution, Int, Tensor};
use ndscatter_burn::{Error, NdScatter, Reduction, Scatter};

const MEMBERS: usize = 34;

/// Members of the trainer's side.
const TRAINER: [usize; 17] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21];

/// The friends of each member with a higher number.
#[rustfmt::skip] // A table.
const FRIENDS: [&[i32]; 33] = [
    &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31], &[2, 3, 7, 13, 17, 19, 21, 30],
    &[3, 7, 8, 9, 13, 27, 28, 32], &[7, 12, 13], &[6, 10], &[6, 10, 16], &[16], &[],
    &[30, 32, 33], &[33], &[], &[], &[], &[33], &[32, 33], &[32, 33], &[], &[], &[32, 33], &[33],
    &[32, 33], &[], &[32, 33], &[25, 27, 29, 32, 33], &[25, 27, 31], &[31], &[29, 33], &[33],
    &[31, 33], &[32, 33], &[32, 33], &[32, 33], &[33],
];

/// A layer: the mean over each member and the friends.
fn means(
    vectors: Tensor<2>,
    senders: &Tensor<1, Int>,
    receivers: &Tensor<1, Int>,
) -> Result<Tensor<2>, Error> {
    let messages = vectors.clone().select(0, senders.clone());
    let mean = Scatter::along(0).reduction(Reduction::Mean);
    vectors.nd_scatter(&mean, receivers.clone(), messages)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    device.seed(1);
    // Each friendship sends a message in both directions.
    let pairs = (0..)
        .zip(FRIENDS)
        .flat_map(|(member, friends)| friends.iter().map(move |&friend| (member, friend)));
    let (senders, receivers): (Vec<i32>, Vec<i32>) = pairs
        .flat_map(|(member, friend)| [(member, friend), (friend, member)])
        .unzip();
    println!("{MEMBERS} members, {} friendships", senders.len() / 2);
    let senders = Tensor::<1, Int>::from_ints(&senders[..], &device);
    let receivers = Tensor::<1, Int>::from_ints(&receivers[..], &device);

    let random = Distribution::Normal(0.0, 0.3);
    let mut vectors = Tensor::<2>::random([MEMBERS, 8], random, &device).require_grad();
    let mut weights = Tensor::<2>::random([8, 2], random, &device).require_grad();
    let known = Tensor::<1, Int>::from_ints([0, 33], &device);
    let sides = Tensor::<2>::from_floats([[1.0, 0.0], [0.0, 1.0]], &device);

    for step in 0..=200 {
        let hidden = relu(means(vectors.clone(), &senders, &receivers)?);
        let scores = means(hidden.matmul(weights.clone()), &senders, &receivers)?;
        let likelihood = log_softmax(scores.clone(), 1).select(0, known.clone()) * sides.clone();
        let loss = -likelihood.sum() / 2.0;
        if step % 50 == 0 {
            let predicted: Vec<i64> = scores.argmax(1).into_data().try_to_vec_as()?;
            let right =
                (0..MEMBERS).filter(|member| (predicted[*member] == 0) == TRAINER.contains(member));
            let loss: f32 = loss.clone().into_scalar();
            println!(
                "step {step:3}: loss {loss:.3}, {} of {MEMBERS} members right",
                right.count()
            );
        }
        let gradients = loss.backward();
        for parameter in [&mut vectors, &mut weights] {
            let gradient = parameter
                .grad(&gradients)
                .ok_or("a parameter has no gradient")?;
            let value = parameter.clone().inner() - gradient * 0.5;
            *parameter = Tensor::from_inner(value).require_grad();
        }
    }
    Ok(())
}
