//! Chooses the route of a call: small, stream, planned, or nothing to write.
//!
//! The choice depends on shapes, layouts and sizes, and for long lists on the cache sizes of the
//! machine. It does not depend on the values of indices, with one exception: whether the tuples of
//! a kept plan have few destinations. The choice is made once, and the code that runs a call only
//! reads this choice.
//!
//! The first row that applies is the route of a call.
//!
//! | route | when | why |
//! |---|---|---|
//! | [`Small`](Route::Small) | No schedule is forced. There are at most 512 tuples, or the plan is kept. Windows are rows at a constant stride, and the call touches less than 512 KiB. If data is copied first, both the data and the output are contiguous. If the operation needs groups, there are at most 64 tuples. A kept plan does not overwrite most of the windows that it moves. | Setting up loops and choosing a schedule would cost more than the call. |
//! | [`Nothing`](Route::Nothing) | The tensor that is written has no element. | Indices are still checked. |
//! | [`Planned`](Route::Planned) | A schedule is forced. | Tests compare schedules. |
//! | [`Stream`](Route::Stream), scatters | Indices list single elements of contiguous tensors. The output fits a cache. This is the second-level cache if there are at least four tuples for each element. It is a quarter of the last-level cache if the output holds the data, and is new memory or no index is an error. If tuples may be skipped, elements have at most 8 bytes. | Each index is checked just before its update is applied. A plan would write and read a number for each index, which costs more than the updates. |
//! | [`Stream`](Route::Stream), gathers | Indices list single elements of contiguous tensors, and an index out of bounds is an error. The output is new memory, which may hold any values after an error. | As for scatters. |
//! | [`Small`](Route::Small) | The conditions of the first row, with more than 512 tuples. | A plan numbers the tuples. Otherwise as in the first row. |
//! | [`Planned`](Route::Planned) | All other calls. | A plan checks all indices before the first write, and its numbers can be divided among workers. |
//!
//! The indices of an element scatter may turn out to name whole rows. The route of this call is
//! then chosen again from its plan.
//!
//! Two routes can fail, and the call is then planned. A small call that rejects duplicates fails
//! if a fast check finds a possible duplicate. A stream fails if there is no memory for a copy of
//! the output.

use std::fmt;

use super::plan_builder::Planning;
use crate::exec::small_transfer::can_run;
use crate::exec::{Direction, Selection, Sizes, is_mostly_overwritten};
use crate::execution::Execution;
use crate::kernel::Operation;
use crate::operand::Layout;
use crate::plan::{Extents, Flat, Form, IndexPlan};
use crate::reduction::{Bounds, Duplicates};

/// Maximum number of tuples whose destination numbers are stored on the stack.
pub(super) const STACK_TUPLES: usize = 512;

/// Minimum ratio of tuples to elements of the output for a streamed call that copies the output to
/// scratch memory and back. From this ratio on, the two copies are a small part of the call's cost.
const TUPLES_OF_ELEMENT: usize = 4;

/// Divisor of the last-level cache. An output that needs no copy may be as large as this part of
/// the cache, because other cores share the cache (estimated, not measured).
const PARTS_OF_LAST_CACHE: u64 = 4;

/// Route of a call: the way in which the crate runs the call. The route does not change the result.
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
    /// Nothing is written. The indices are checked.
    Nothing,
    /// The calling thread moves rows without a schedule. A call with at most 512 tuples makes no
    /// plan either.
    Small,
    /// Each element is moved as soon as its index is checked, without a plan.
    Stream,
    /// A plan computes all destination numbers, and a [`Schedule`](crate::Schedule) moves the
    /// windows.
    Planned,
}

impl Route {
    /// Returns a sentence for people that says what a call does on this route.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Nothing => "all indices are checked, and nothing is written",
            Self::Small => "the calling thread moves rows, without a schedule",
            Self::Stream => "each element is moved when its index is checked, without a plan",
            Self::Planned => "a plan numbers the destinations, and a schedule moves the windows",
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

/// A route, and the selection of a schedule in case the call is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) route: Route,
    pub(crate) selection: Selection,
}

impl Choice {
    /// Returns the choice for a plan that was made for this call. `facts` are those of the plan.
    ///
    /// If the plan merged single elements into rows, the route is chosen again. A stream that
    /// failed for lack of memory is not tried again.
    pub(crate) fn with_plan(self, form: &Form, plan: &IndexPlan, facts: &Facts<'_>) -> Self {
        match self.route != Route::Stream && plan.extents().form != form {
            true => facts.choose(),
            false => self,
        }
    }
}

/// Source of the destination numbers of a call: its indices, or a plan.
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

/// Facts about a call that determine its [`Route`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) execution: &'a Execution<'a>,
    pub(crate) direction: Direction,
    pub(crate) operation: &'a Operation,
    /// Layouts of three tensors: the tensor whose windows destination numbers address (the output
    /// of a scatter, the data of a gather), the tensor that lists one window for each tuple, and
    /// the data that is copied first.
    pub(crate) numbered: &'a Layout<'a>,
    pub(crate) listed: &'a Layout<'a>,
    pub(crate) copied: Option<&'a Layout<'a>>,
    /// Whether the output is new memory.
    pub(crate) is_new: bool,
    /// Strides of the tensors `numbered` and `listed`, if windows are rows at a constant stride.
    pub(crate) flat: Option<&'a Flat>,
    pub(crate) numbers: Numbers<'a>,
}

impl Facts<'_> {
    /// Chooses the route of the call.
    #[inline(always)] // On the path of the smallest calls.
    pub(crate) fn choose(&self) -> Choice {
        if self.execution.schedule.is_none() && self.has_numbers() && self.is_small() {
            return Choice {
                route: Route::Small,
                selection: Selection::Small,
            };
        }
        // The facts are copied, so that small calls need not store them in memory.
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

    /// Checks whether the call has a plan, or at most [`STACK_TUPLES`] tuples to number.
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
        let are_contiguous =
            |copied: &Layout<'_>| self.numbered.is_contiguous() && copied.is_contiguous();
        let windows = flat.outer.saturating_mul(flat.tuples);
        let sizes = self.sizes_in_bytes(windows, flat.run, flat.elements);
        self.copied.is_none_or(are_contiguous)
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

    /// Checks whether most windows that a kept plan moves are overwritten by later ones.
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

    /// Checks whether indices list single elements of contiguous tensors, a kernel exists for
    /// them, and the output is in a cache (scatter) or is new memory (gather).
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
            && planning.duplicates == Duplicates::Allow;
        let are_contiguous = self.numbered.is_contiguous()
            && layout.is_contiguous()
            && self.copied.is_none_or(Layout::is_contiguous);
        let kernels = self.operation.kernels;
        are_elements
            && are_contiguous
            && match self.direction {
                // A step of 0: all updates are one value.
                Direction::Scatter => {
                    (self.listed.is_contiguous() || flat.step == 0)
                        && kernels.apply_elements.is_some()
                        && !self.operation.needs_groups
                        && self.can_skip(planning.rules.bounds)
                        // The numbers of a block have 32 bits.
                        && flat.elements <= u32::MAX as usize
                        && self.fits_caches(flat, planning.rules.bounds)
                }
                // The kernel has offsets of 32 bits.
                Direction::Gather => {
                    self.listed.is_contiguous()
                        && planning.rules.bounds == Bounds::Error
                        && kernels.gather_checked.is_some()
                        && self.is_new
                        && flat.elements <= u32::MAX as usize
                }
            }
    }

    /// Checks whether values of skipped tuples can be dropped, if tuples may be skipped.
    fn can_skip(&self, bounds: Bounds) -> bool {
        bounds != Bounds::Skip || self.operation.kernels.size <= size_of::<u64>()
    }

    /// Checks whether the output of a scatter fits the cache that the module's table names.
    fn fits_caches(&self, flat: &Flat, bounds: Bounds) -> bool {
        let is_in_place = may_write_unchecked(self.is_new, self.copied.is_some(), bounds);
        if !is_in_place && flat.tuples / TUPLES_OF_ELEMENT < flat.elements {
            return false;
        }
        let [_, second_cache, last_cache] = self.execution.machine_in_use().caches();
        let limit = match is_in_place {
            true => last_cache / PARTS_OF_LAST_CACHE,
            false => second_cache,
        };
        flat.elements.saturating_mul(self.operation.kernels.size) as u64 <= limit
    }
}

/// Whether a call may write its output before all indices are checked. The output is new memory,
/// which may hold any values after an error, or no index is an error. The output must hold the
/// data.
pub(super) fn may_write_unchecked(is_new: bool, copies_data: bool, bounds: Bounds) -> bool {
    (is_new || bounds != Bounds::Error) && !copies_data
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

/// Records that the calling thread ran a call on `route`, in debug builds.
#[inline(always)]
pub(crate) fn note(route: Route) {
    #[cfg(debug_assertions)]
    LAST.set(Some(route));
    #[cfg(not(debug_assertions))]
    let _ = route;
}

/// Returns and clears the route of the calling thread's last call, for tests of [`Explanation`]s.
///
/// [`Explanation`]: crate::Explanation
#[cfg(debug_assertions)]
#[doc(hidden)]
pub fn last_route() -> Option<Route> {
    LAST.take()
}
