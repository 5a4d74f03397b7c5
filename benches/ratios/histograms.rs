//! Times histograms of integers. They show whether several workers gain more than their
//! private copies of the bins cost.

use std::fmt::Write;

use ndscatter::{CallingThread, DType, Execution, Reduction};

use crate::common::contenders::{Contender, time};
use crate::common::inputs::{Form, Inputs};
use crate::common::numbers::Number;
use crate::common::workloads::Histogram;
use crate::{Options, Subject, serial};

/// Head of the table.
pub(crate) const HEAD: &str = "histogram | schedule, planned | one-shot ms | calling thread | \
     serial | reference loop | planned ms | planned: calling thread | planned: serial";

/// Checks a histogram. Then times it and appends its row, unless `options` request only checks.
pub(crate) fn measure(histogram: Histogram, options: &Options, rows: &mut String) {
    let is_max = histogram.workload.reduction == Reduction::Max;
    match histogram.dtype {
        DType::U8 => typed::<u8>(histogram, [1, 2, 3], options, rows),
        DType::U32 => typed::<u32>(histogram, [1, 2, 3], options, rows),
        DType::I64 => typed::<i64>(histogram, [1, -2, 3], options, rows),
        DType::I32 if is_max => typed::<i32>(histogram, [-5, 70, 9], options, rows),
        other => unreachable!("no histogram has elements of {other}"),
    }
}

/// Measures a histogram of type `T`. The bins begin with `values[0]`. The updates cycle
/// through all three values.
fn typed<T: Number>(histogram: Histogram, values: [T; 3], options: &Options, rows: &mut String) {
    let mut updates = values.into_iter().cycle();
    let update = |_: &mut _| updates.next().expect("an endless cycle");
    let inputs = Inputs::of_values(histogram.workload, values[0], update);
    let subject = Subject::new(inputs);
    let contenders = contenders(&subject);
    let mut target = subject.inputs.target();
    subject.check(&contenders, &mut target);
    if options.only_checks() {
        return;
    }
    let times = time(&contenders, &mut target, options.rounds.get(), 1);
    let schedule = (subject.plans[0].run())
        .explain(T::DTYPE, true)
        .expect("the type has the reduction")
        .schedule();
    let time = |at: usize| times[at].min;
    let (one_shot, planned) = (time(0), time(4));
    writeln!(
        rows,
        "| {} | {schedule} | {:.3} | {:.2} | {:.2} | {:.2} | {:.3} | {:.2} | {:.2} |",
        histogram.workload.name,
        one_shot * 1e-6,
        time(1) / one_shot,
        time(2) / one_shot,
        time(3) / one_shot,
        planned * 1e-6,
        time(5) / planned,
        time(6) / planned,
    )
    .expect("a string");
}

fn contenders<T: Number>(subject: &Subject<T>) -> [Contender<'_, T>; 7] {
    let form = Form::InPlace;
    let chosen = Execution::new();
    let alone = chosen.pool(&CallingThread);
    let one_shot = |name, execution| subject.one_shot(name, execution, form);
    let planned = |name, execution| subject.planned(name, &subject.plans, execution, form);
    [
        one_shot("one-shot", chosen),
        one_shot("one-shot, calling thread", alone),
        one_shot("one-shot, serial", serial()),
        Contender::new("reference loop", move |target, set| {
            subject.plain(form, target, set);
            None
        }),
        planned("planned", chosen),
        planned("planned, calling thread", alone),
        planned("planned, serial", serial()),
    ]
}
