//! Which way a call goes.
//!
//! Knows shapes, layouts and sizes, and the machine's caches where a list is long. Knows
//! nothing of the values of indices, but whether a kept plan saw many duplicates. The
//! answer is a value: nothing that runs a call asks again.
//!
//! The first row that applies is the route of a call.
//!
//! | route | when | why |
//! |---|---|---|
//! | [`Small`](Route::Small) | No schedule is forced. There are at most 512 tuples, or a plan is kept. Windows are rows at even distances, and the call touches less than 512 KiB. Data that is copied first is contiguous, and so is the output. Where groups are needed, there are at most 64 tuples. A kept plan does not overwrite most of what it moves. | To set up loops and to choose a schedule would take longer than the call. |
//! | [`Nothing`](Route::Nothing) | The tensor that is written has no element. | Indices are still checked. |
//! | [`Planned`](Route::Planned) | A schedule is forced. | Tests compare schedules. |
//! | [`Stream`](Route::Stream), scatters | Indices list single elements of contiguous tensors, and are errors out of bounds. The output fits a cache: the second one with four tuples an element, or a quarter of the last one where the output is new memory that holds data. | Each index is checked just before it is applied. A plan would write and read a number for each index, which takes longer than the updates. |
//! | [`Stream`](Route::Stream), gathers | Indices list single elements of contiguous tensors, and are errors out of bounds. The output is new memory, which may hold anything after an error. | As above. |
//! | [`Small`](Route::Small) | As in the first row, with more tuples. | A plan numbers the tuples. The rest is as in the first row. |
//! | [`Planned`](Route::Planned) | All others. | A plan checks all indices before the first write, and its numbers can be divided among workers. |
//!
//! Indices that list single elements may turn out to name whole rows. The route of such a
//! call is that of its plan.
//!
//! Two routes can turn out not to work. The call is then planned. A small call that rejects
//! duplicates is planned where a filter sees a possible duplicate. A stream is planned where
//! there is no memory for a copy of the output.

use std::fmt;

use super::plan_builder::Planning;
use crate::exec::small_transfer::can_run;
use crate::exec::{Direction, Selection, Sizes, is_mostly_overwritten};
use crate::execution::Execution;
use crate::kernel::Operation;
use crate::operand::Layout;
use crate::plan::{Extents, Flat, Form, IndexPlan};
use crate::reduction::{Bounds, Duplicates};

/// Most tuples whose numbers lie on the stack.
pub(super) const STACK_TUPLES: usize = 512;

/// With this number of tuples for each element, the copy of the output to scratch memory
/// and back is little of the work.
const TUPLES_OF_ELEMENT: usize = 4;

/// An output that needs no copy may be this part of the last cache, which others share
/// (an argument).
const PARTS_OF_LAST_CACHE: u64 = 4;

/// Which way a call goes. It changes no bit of a result.
///
/// ```
/// use ndscatter::{DType, Layout, Route, Scatter, TensorView};
///
/// let (data, rows) = (Layout::contiguous(&[9, 4]), [2_i64, 0, 7]);
/// let explanation = Scatter::along(0).explain(data, TensorView::from(&rows), DType::F32, true)?;
/// assert_eq!(explanation.route(), Route::Small);
/// # Ok::<(), ndscatter::ScatterError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// Nothing is written. Indices have been checked.
    Nothing,
    /// The calling thread moves rows at once, without a schedule. Without a plan too,
    /// where there are at most 512 tuples.
    Small,
    /// Single elements are moved as their indices are read and checked, without a plan.
    Stream,
    /// A plan numbers all destinations, and a [`Schedule`](crate::Schedule) moves the
    /// windows.
    Planned,
}

impl Route {
    /// What a call does on this route, for people.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Nothing => "indices are checked, and nothing is written",
            Self::Small => "rows are moved at once, without a schedule",
            Self::Stream => "elements are moved as their indices are checked, without a plan",
            Self::Planned => "windows are moved by the schedule of a plan",
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing",
            Self::Small => "small",
            Self::Stream => "stream",
            Self::Planned => "planned",
        })
    }
}

/// A route, and how a schedule is selected where the call is planned after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) route: Route,
    pub(crate) selection: Selection,
}

impl Choice {
    /// The choice for a plan that was made for the call, whose facts are `facts`. Indices
    /// of single elements may have turned out to name whole rows, which are fewer. A stream
    /// that found no memory is not tried again.
    pub(crate) fn with_plan(self, form: &Form, plan: &IndexPlan, facts: &Facts<'_>) -> Self {
        match self.route != Route::Stream && plan.extents().form != form {
            true => facts.choose(),
            false => self,
        }
    }
}

/// Where the numbers of tuples come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Numbers<'a> {
    Indices {
        extents: &'a Extents<'a>,
        layout: &'a Layout<'a>,
        planning: Planning,
    },
    Plan {
        plan: &'a IndexPlan,
        is_kept: bool,
    },
}

/// What a route depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) execution: &'a Execution<'a>,
    pub(crate) direction: Direction,
    pub(crate) operation: &'a Operation,
    /// The layouts of the tensor whose windows are numbered, of the tensor that lists a
    /// window for each tuple, and of data that is copied first.
    pub(crate) numbered: &'a Layout<'a>,
    pub(crate) listed: &'a Layout<'a>,
    pub(crate) copied: Option<&'a Layout<'a>>,
    /// Whether the output is new memory.
    pub(crate) is_new: bool,
    /// Both tensors, where windows are rows at even distances.
    pub(crate) flat: Option<&'a Flat>,
    pub(crate) numbers: Numbers<'a>,
}

impl Facts<'_> {
    /// The route of the call.
    #[inline(always)] // As all that is on the way of the smallest calls.
    pub(crate) fn choose(&self) -> Choice {
        if self.execution.schedule.is_none() && self.has_numbers() && self.is_small() {
            return Choice {
                route: Route::Small,
                selection: Selection::Small,
            };
        }
        // A copy, so that small calls need not write the facts to memory.
        Self::choose_for_large(*self)
    }

    #[inline(never)]
    fn choose_for_large(self) -> Choice {
        let forced = self.execution.schedule;
        let (route, is_small) = if self.writes_nothing() {
            (Route::Nothing, true)
        } else if forced.is_some() {
            (Route::Planned, false)
        } else if self.can_stream() {
            (Route::Stream, false)
        } else if self.is_small() {
            (Route::Small, true)
        } else {
            let is_small = self.sizes().are_small(self.direction) && !self.is_mostly_overwritten();
            (Route::Planned, is_small)
        };
        Choice {
            route,
            selection: Selection::new(forced, is_small),
        }
    }

    /// Whether a small call needs no plan to number its tuples, or has one.
    #[inline(always)]
    fn has_numbers(&self) -> bool {
        match self.numbers {
            Numbers::Indices { extents, .. } => extents.tuples <= STACK_TUPLES,
            Numbers::Plan { .. } => true,
        }
    }

    #[inline(always)]
    fn is_small(&self) -> bool {
        let Some(flat) = self.flat else {
            return false;
        };
        let is_one_run =
            |copied: &Layout<'_>| self.numbered.is_contiguous() && copied.is_contiguous();
        let windows = flat.outer.saturating_mul(flat.tuples);
        let sizes = self.sizes_in_bytes(windows, flat.run, flat.elements);
        self.copied.is_none_or(is_one_run)
            && can_run(flat, self.operation)
            && sizes.touch_little()
            && !self.is_mostly_overwritten()
    }

    fn writes_nothing(&self) -> bool {
        let written = match self.direction {
            Direction::Scatter => self.numbered,
            Direction::Gather => self.listed,
        };
        written.shape().contains(&0)
    }

    /// Whether a kept plan moves most windows to be overwritten.
    #[inline(always)]
    fn is_mostly_overwritten(&self) -> bool {
        let Numbers::Plan { plan, is_kept } = self.numbers else {
            return false;
        };
        if !is_kept || self.direction == Direction::Gather {
            return false;
        }
        let outer = (self.flat).map_or_else(|| repetitions(&plan.extents()), |flat| flat.outer);
        let windows = outer.saturating_mul(plan.tuples());
        is_mostly_overwritten(plan, self.operation, windows)
    }

    fn sizes(&self) -> Sizes {
        let computed;
        let extents = match self.numbers {
            Numbers::Indices { extents, .. } => extents,
            Numbers::Plan { plan, .. } => {
                computed = plan.extents();
                &computed
            }
        };
        let form = extents.form;
        let window = &extents.reach[form.batch_rank + form.tuple_len..];
        self.sizes_in_bytes(
            repetitions(extents).saturating_mul(extents.tuples),
            product(window),
            product(extents.shape),
        )
    }

    #[inline(always)]
    fn sizes_in_bytes(&self, windows: usize, window: usize, elements: usize) -> Sizes {
        let size = self.operation.kernels.size;
        let copied = if self.copied.is_some() { elements } else { 0 };
        Sizes {
            windows,
            window_bytes: window.saturating_mul(size),
            copied_bytes: copied.saturating_mul(size),
        }
    }

    /// Whether indices list single elements of contiguous tensors, there is a kernel for
    /// them, and it finds the output in a cache.
    fn can_stream(&self) -> bool {
        let (
            Numbers::Indices {
                extents,
                layout,
                planning,
            },
            Some(flat),
        ) = (self.numbers, self.flat)
        else {
            return false;
        };
        let are_elements = (flat.outer, flat.run) == (1, 1)
            && extents.form.coordinates == Form::ALL_EXPLICIT
            && planning.rules.bounds == Bounds::Error
            && planning.duplicates == Duplicates::Allow;
        let are_contiguous = self.numbered.is_contiguous()
            && layout.is_contiguous()
            && self.copied.is_none_or(Layout::is_contiguous);
        let kernels = self.operation.kernels;
        are_elements
            && are_contiguous
            && match self.direction {
                // One update may stand for all.
                Direction::Scatter => {
                    (self.listed.is_contiguous() || flat.step == 0)
                        && kernels.apply_elements.is_some()
                        && !self.operation.needs_groups
                        && self.fits_caches(flat)
                }
                // The kernel has offsets of 32 bits. It reads data where it lies.
                Direction::Gather => {
                    self.listed.is_contiguous()
                        && kernels.gather_checked.is_some()
                        && self.is_new
                        && flat.elements <= u32::MAX as usize
                }
            }
    }

    /// Whether the output of a scatter fits a cache.
    fn fits_caches(&self, flat: &Flat) -> bool {
        let is_in_place = self.is_new && self.copied.is_none();
        if !is_in_place && flat.tuples / TUPLES_OF_ELEMENT < flat.elements {
            return false;
        }
        let [_, second_cache, last_cache] = self.execution.machine_in_use().caches();
        let most = match is_in_place {
            true => last_cache / PARTS_OF_LAST_CACHE,
            false => second_cache,
        };
        flat.elements.saturating_mul(self.operation.kernels.size) as u64 <= most
    }
}

fn repetitions(extents: &Extents<'_>) -> usize {
    product(&extents.reach[..extents.form.batch_rank])
}

fn product(sizes: &[usize]) -> usize {
    sizes.iter().fold(1, |all, &size| all.saturating_mul(size))
}

#[cfg(debug_assertions)]
thread_local! {
    static LAST: std::cell::Cell<Option<Route>> = const { std::cell::Cell::new(None) };
}

/// Notes that the calling thread ran a call on `route`.
#[inline(always)]
pub(crate) fn note(route: Route) {
    #[cfg(debug_assertions)]
    LAST.set(Some(route));
    #[cfg(not(debug_assertions))]
    let _ = route;
}

/// The route of the last call of this thread, for tests of [`Explanation`]s.
///
/// [`Explanation`]: crate::Explanation
#[cfg(debug_assertions)]
#[doc(hidden)]
pub fn last_route() -> Option<Route> {
    LAST.take()
}
