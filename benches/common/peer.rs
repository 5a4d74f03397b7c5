//! Defines the functions that a runtime needs to take part in a comparison, and converts its calls
//! to contenders of each form.

use super::contest::{Contender, Entrant, Entry, Fallible};
use super::inputs::Form;

/// A runtime with the tensors of a workload, in its own types.
pub(crate) trait Peer {
    type Tensor;

    /// Returns the shared tensor of data, which calls must not change. Costs a reference count.
    fn kept(&self) -> Self::Tensor;

    /// Returns a new copy of data, which calls may change.
    fn owned(&self) -> Self::Tensor;

    /// Copies data into a tensor from [`owned`](Self::owned).
    fn refill(&self, tensor: &mut Self::Tensor);

    /// Returns a copy of a tensor's values.
    fn values(&self, tensor: &Self::Tensor) -> Vec<f32>;

    /// Returns the calls that compute the workload in a form, or the reason why there is none.
    fn calls(&self, form: Form) -> Result<Vec<Call<Self>>, &'static str>;
}

pub(crate) struct Call<P: Peer + ?Sized> {
    name: String,
    run: Run<P>,
    /// Whether the output must contain data before the call.
    starts_from_data: bool,
}

/// Function of a call. The tensor is the output. For an allocating call, it is the shared data,
/// which the call must not change. The number is that of an index set. Returns the result.
pub(crate) type Run<P> = fn(&P, <P as Peer>::Tensor, usize) -> Fallible<<P as Peer>::Tensor>;

impl<P: Peer> Call<P> {
    /// Creates a call that works in place or allocates.
    pub(crate) fn new(name: &str, run: Run<P>) -> Self {
        Self {
            name: name.into(),
            run,
            starts_from_data: true,
        }
    }

    /// Creates a call that overwrites all elements of its output.
    pub(crate) fn writing_all(name: &str, run: Run<P>) -> Self {
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
    /// Whether a run first copies data into the output.
    refills: bool,
    /// The target, or the last allocated result.
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
