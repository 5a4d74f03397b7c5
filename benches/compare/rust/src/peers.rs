//! What a runtime must be able to do to take part, and how its calls become
//! contenders of each form.

mod burn;
mod candle;
mod onnx;
mod rten;
mod tract;

use crate::common::inputs::{Form, Inputs};
use crate::contest::{Contender, Entrant, Entry, Fallible};
use crate::ours::Ours;
use crate::rows::Rows;

/// The contenders: name, and the package of the manifest that it is.
pub(crate) const CONTENDERS: [(&str, &str); 5] = [
    ("ndscatter", "ndscatter"),
    ("candle", "candle-core"),
    ("tract", "tract-core"),
    ("rten", "rten"),
    ("burn", "burn-flex"),
];

/// All of them on one workload, in the order of [`CONTENDERS`].
pub(crate) fn entrants<'a>(
    inputs: &'a Inputs,
    rows: &'a Rows<'a>,
    threads: usize,
) -> [Box<dyn Entrant + 'a>; CONTENDERS.len()] {
    [
        Box::new(Ours(inputs)),
        Box::new(candle::Candle::new(rows)),
        Box::new(tract::Tract::new(rows)),
        Box::new(rten::Rten::new(rows, threads)),
        Box::new(burn::Burn::new(rows)),
    ]
}

/// A runtime with the tensors of a workload, in its own types.
trait Peer {
    type Tensor;

    /// The tensor of the data, which calls must keep. Costs a reference count.
    fn kept(&self) -> Self::Tensor;

    /// Another tensor of the data, which calls may change.
    fn owned(&self) -> Self::Tensor;

    /// Copies the data into a tensor from [`owned`](Self::owned).
    fn refill(&self, tensor: &mut Self::Tensor);

    fn values(&self, tensor: &Self::Tensor) -> Vec<f32>;

    /// Calls that compute the workload in this form, or why there is none.
    fn calls(&self, form: Form) -> Result<Vec<Call<Self>>, &'static str>;
}

struct Call<P: Peer + ?Sized> {
    name: String,
    run: Run<P>,
    /// Whether it wants the data in the output before it begins.
    starts_from_data: bool,
}

/// Takes the tensor that it changes, or for an allocating call the one that it
/// must keep, and the number of an index set.
type Run<P> = fn(&P, <P as Peer>::Tensor, usize) -> Fallible<<P as Peer>::Tensor>;

impl<P: Peer> Call<P> {
    /// A call that works in place, or that allocates.
    fn new(name: &str, run: Run<P>) -> Self {
        Self {
            name: name.into(),
            run,
            starts_from_data: true,
        }
    }

    /// A call that writes all of an output, whatever is in it.
    fn writing_all(name: &str, run: Run<P>) -> Self {
        Self {
            starts_from_data: false,
            ..Self::new(name, run)
        }
    }
}

impl<P: Peer> Entrant for P {
    fn entries(&self, form: Form) -> Result<Vec<Entry<'_>>, &'static str> {
        let entry = |call: Call<P>| {
            let refills = form == Form::Functional && call.starts_from_data;
            Entry {
                call: if refills {
                    format!("copy, {}", call.name)
                } else {
                    call.name
                },
                contender: Box::new(Turn {
                    peer: self,
                    run: call.run,
                    form,
                    refills,
                    tensor: None,
                }),
            }
        };
        Ok(self.calls(form)?.into_iter().map(entry).collect())
    }
}

/// A call of a peer in one form.
struct Turn<'a, P: Peer> {
    peer: &'a P,
    run: Run<P>,
    form: Form,
    /// Whether a run begins with a copy of the data into the output.
    refills: bool,
    /// The target, or what was allocated.
    tensor: Option<P::Tensor>,
}

impl<P: Peer> Turn<'_, P> {
    fn target(&mut self, refilled: bool) -> P::Tensor {
        let mut tensor = self.tensor.take().unwrap_or_else(|| self.peer.owned());
        if refilled {
            self.peer.refill(&mut tensor);
        }
        tensor
    }
}

impl<P: Peer> Contender for Turn<'_, P> {
    fn reset(&mut self) {
        self.tensor = match self.form {
            Form::Allocating => None,
            Form::InPlace | Form::Functional => Some(self.target(self.form == Form::InPlace)),
        };
    }

    fn run(&mut self, set: usize) -> Fallible<()> {
        let tensor = match self.form {
            Form::Allocating => self.peer.kept(),
            Form::InPlace | Form::Functional => self.target(self.refills),
        };
        self.tensor = Some((self.run)(self.peer, tensor, set)?);
        Ok(())
    }

    fn result(&self) -> Vec<f32> {
        (self.tensor.as_ref()).map_or_else(Vec::new, |tensor| self.peer.values(tensor))
    }
}
