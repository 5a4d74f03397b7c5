//! The calls of ndscatter, with the arguments of the operator and without forced choices.

use ndscatter::Execution;

use crate::common::aligned::Aligned;
use crate::common::contest::{Contender, Entrant, Entry, Fallible};
use crate::common::inputs::{Form, Inputs};

pub(crate) struct Ours<'a>(pub(crate) &'a Inputs);

impl Entrant for Ours<'_> {
    fn entries(&self, form: Form) -> Result<Vec<Entry<'_>>, &'static str> {
        let call = match form {
            Form::InPlace => "in_place",
            Form::Functional => "write_into",
            Form::Allocating => "allocate",
        };
        Ok(vec![Entry {
            call: call.into(),
            contender: Box::new(Call {
                inputs: self.0,
                form,
                target: self.0.target(),
                allocated: None,
            }),
        }])
    }
}

struct Call<'a> {
    inputs: &'a Inputs,
    form: Form,
    target: Aligned<f32>,
    allocated: Option<Vec<f32>>,
}

impl Contender for Call<'_> {
    fn reset(&mut self) {
        self.allocated = None;
        if self.form == Form::InPlace {
            self.target.copy_from_slice(&self.inputs.data);
        }
    }

    fn run(&mut self, set: usize) -> Fallible<()> {
        let execution = Execution::new();
        self.allocated = (self.inputs).scatter(execution, self.form, &mut self.target, set);
        Ok(())
    }

    fn result(&self) -> Vec<f32> {
        self.allocated.as_deref().unwrap_or(&self.target).to_vec()
    }
}
