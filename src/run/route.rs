//! Chooses the route of a call, that is, the code path that runs the call: small, stream, planned,
//! or nothing to write.
//!
//! The choice of the route depends on the options of the call, on shapes, layouts and sizes, and
//! for long lists on the cache sizes of the machine. The values of indices affect the choice of the
//! route only in two cases. In the first case, the tuples of a kept plan have few distinct
//! destinations. In the second case, the indices of an element scatter or gather are equal along
//! rows. The code that runs a call only reads the chosen route. (The schedule of a planned call is
//! chosen later, by other code, which uses more properties of the indices.)
//!
//! The table below is read from the top. The first row whose conditions hold gives the route of
//! the call.
//!
//! | route | when | why |
//! |---|---|---|
//! | [`Small`](Route::Small) | No schedule is forced. There are at most 512 tuples, or the plan is kept. Windows are rows at a constant stride, destination numbers fit in 32 bits, and the call touches less than 512 KiB (estimated). If data is copied first, the data and the output are contiguous. If the operation needs groups (all updates of one destination together), there are at most 64 tuples. If the plan is kept, later updates of the call do not overwrite most of the windows (estimated). | Setting up loops and choosing a schedule would cost more than the call. |
//! | [`Nothing`](Route::Nothing) | The tensor that is written has no element. | Indices are still checked. |
//! | [`Planned`](Route::Planned) | A schedule is forced. | Tests compare schedules. |
//! | [`Stream`](Route::Stream), scatters | Indices list single elements of contiguous tensors. Duplicates are allowed, and the operation needs no groups. No copy of the output is needed if the output already holds the data, and the output is new memory or an index out of bounds is no error. Without a copy, the output has at most a quarter of the bytes of the last-level cache. With a copy, the output has at most the bytes of the second-level cache, and there are at least four tuples for each element. If tuples may be skipped, elements have at most 8 bytes. A long list whose workers would have no private copies has at most 6 workers. | Each index is checked just before its update is applied. A plan would write and read a destination number for each index, which costs more than the updates. |
//! | [`Stream`](Route::Stream), gathers | Indices list single elements of contiguous tensors, and an index out of bounds is an error. The output is new memory, which may hold any values after an error. | As for scatters. |
//! | [`Small`](Route::Small) | The conditions of the first row, with more than 512 tuples. | A plan computes the destination numbers. Otherwise as in the first row. |
//! | [`Planned`](Route::Planned) | All other calls. | A plan checks all indices before the first write, and its destination numbers can be divided among workers. |
//!
//! While the crate makes a plan, it may find that the indices of an element scatter or gather are
//! equal along rows. The plan then moves whole rows, and the route of the call is chosen again for
//! this plan.
//!
//! A call on two of the routes can fail before the call writes. The crate then makes a plan for the
//! call:
//! - A call on the route [`Small`](Route::Small) that rejects duplicates fails if a fast check does
//!   not show that all destinations are distinct.
//! - A scatter on the route [`Stream`](Route::Stream) fails if there is no memory for a copy of the
//!   output, or if other code changed an invalid index during the call.

use std::fmt;

use super::plan_builder::Planning;
use crate::exec::small_transfer::can_run;
use crate::exec::{Direction, Selection, Sizes, is_mostly_overwritten};
use crate::execution::Execution;
use crate::kernel::Operation;
use crate::machine::Machine;
use crate::operand::Layout;
use crate::plan::{Extents, Flat, Form, IndexPlan};
use crate::reduction::{Bounds, Duplicates};

/// Maximum number of tuples in a call that computes its destination numbers on the stack.
pub(super) const STACK_TUPLES: usize = 512;

/// Minimum number of tuples per element of the output, for a scatter on the route
/// [`Stream`](Route::Stream) (without a plan) that updates a copy of the output. This scatter
/// copies the output to scratch memory and back. From this number of tuples on, the two copies are
/// a small part of the cost of the call.
const TUPLES_OF_ELEMENT: usize = 4;

/// Divisor of the size of the last-level cache. The quotient is the maximum size of the output of a
/// scatter on the route [`Stream`](Route::Stream) (without a plan) that needs no copy of the
/// output. The limit is below the whole cache, because other cores share the cache (estimated, not
/// measured).
const PARTS_OF_LAST_CACHE: u64 = 4;

/// Maximum number of workers that apply a streamed scatter together, each to its own range of
/// elements. Every worker checks all indices, so the time approaches the time of the checks. With
/// more workers, a plan is faster: workers share the checks, and then the partitions of the list.
///
/// The prediction on a Zen 5, without limits of bandwidth, gives equal times for about 6 workers
/// (4 Mi sums of `f32` into 65,536 bins).
pub(super) const MAX_RANGES: usize = 6;

/// Route of a call: the code path that runs the call. The route does not change the result.
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
    /// The calling thread moves rows without a schedule. For a call without a kept plan and with at
    /// most 512 tuples, the crate usually makes no plan either.
    Small,
    /// Each element is moved just after its index is checked, without a plan.
    Stream,
    /// A plan has all destination numbers, and a [`Schedule`](crate::Schedule) moves the windows.
    Planned,
}

impl Route {
    /// Returns a sentence, for people, that describes this route.
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

/// The route of a call, and the rule that selects a schedule if the call runs by a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) route: Route,
    pub(crate) selection: Selection,
}

impl Choice {
    /// Returns the choice of a route and a schedule rule for a plan that was made for this call.
    /// `facts` describes the call with this plan.
    ///
    /// If the plan merged single elements into rows, the route is chosen again. If the plan did not
    /// merge single elements, the choice stays unchanged. The choice also stays unchanged after a
    /// call on the route [`Stream`](Route::Stream) that failed.
    pub(crate) fn with_plan(self, form: &Form, plan: &IndexPlan, facts: &Facts<'_>) -> Self {
        match self.route != Route::Stream && plan.extents().form != form {
            true => facts.choose(),
            false => self,
        }
    }
}

/// Source of the destination numbers of a call: the indices of the call, or a plan.
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
    /// Layout of the tensor whose windows are addressed by destination numbers (the output of a
    /// scatter, the data of a gather).
    pub(crate) numbered: &'a Layout<'a>,
    /// Layout of the tensor that has one window for each tuple (the updates of a scatter, the
    /// output of a gather).
    pub(crate) listed: &'a Layout<'a>,
    /// Layout of the data that a scatter copies to its output first, if it copies data.
    pub(crate) copied: Option<&'a Layout<'a>>,
    /// Whether the output is new memory, which may hold any values after an error.
    pub(crate) is_new: bool,
    /// Strides of the tensors `numbered` and `listed`. `None` if windows are not rows at a constant
    /// stride.
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
        // The function takes a copy of `self`, so that small calls need not store `self` in memory.
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

    /// Checks whether the call needs no plan for its destination numbers: the call already has a
    /// plan, or has at most [`STACK_TUPLES`] tuples.
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

    /// Checks whether a scatter with a kept plan is faster if it moves only the last window of each
    /// destination, because later tuples overwrite most windows.
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

    /// Checks whether the call can run on the route [`Stream`](Route::Stream). The table of this
    /// module lists the main conditions.
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
                // If `step` is 0, all updates are one value.
                Direction::Scatter => {
                    (self.listed.is_contiguous() || flat.step == 0)
                        && kernels.apply_elements.is_some()
                        && !self.operation.needs_groups
                        && self.can_skip(planning.rules.bounds)
                        // A block of tuples has destination numbers of 32 bits.
                        && flat.elements <= u32::MAX as usize
                        && self.streams_fast(flat, planning.rules.bounds)
                }
                // The kernel has offsets of 32 bits, so data has at most `u32::MAX` elements.
                Direction::Gather => {
                    self.listed.is_contiguous()
                        && planning.rules.bounds == Bounds::Error
                        && kernels.gather_checked.is_some()
                        && self.is_new
                        && flat.elements <= u32::MAX as usize
                }
            }
    }

    /// Checks whether the route [`Stream`](Route::Stream) may divide the list among workers, and
    /// more than [`MAX_RANGES`] workers are free. Workers with private copies do not count, because
    /// they share the checks of the indices.
    fn has_many_workers(&self, machine: &Machine, flat: &Flat, bytes: usize) -> bool {
        machine.variants.share_list(flat.tuples, bytes)
            && self.operation.private().is_none()
            && self.execution.begin().workers().parts() > MAX_RANGES
    }

    /// Checks whether the call can run on the route [`Stream`](Route::Stream) although the bounds
    /// rule of the call may skip tuples. The updates of skipped tuples are left out of a block of
    /// updates, which is possible only for updates of at most 8 bytes. The route does not support
    /// [`Bounds::SkipNegative`]. If the bounds rule skips no tuple, the result is true.
    fn can_skip(&self, bounds: Bounds) -> bool {
        match bounds {
            Bounds::Error | Bounds::Clamp => true,
            Bounds::Skip => self.operation.kernels.size <= size_of::<u64>(),
            Bounds::SkipNegative => false,
        }
    }

    /// Checks whether the machine runs a scatter fast on the route [`Stream`](Route::Stream). The
    /// output must fit the cache that the table of this module states. The call must not have
    /// [many workers](Self::has_many_workers). If the scatter works on a copy of the output, the
    /// function also checks that the number of tuples is at least [`TUPLES_OF_ELEMENT`] times the
    /// number of elements.
    fn streams_fast(&self, flat: &Flat, bounds: Bounds) -> bool {
        let is_in_place = may_write_unchecked(self.is_new, self.copied.is_some(), bounds);
        if !is_in_place && flat.tuples / TUPLES_OF_ELEMENT < flat.elements {
            return false;
        }
        let machine = self.execution.machine_in_use();
        let [_, second_cache, last_cache] = machine.caches();
        let limit = match is_in_place {
            true => last_cache / PARTS_OF_LAST_CACHE,
            false => second_cache,
        };
        let bytes = flat.elements.saturating_mul(self.operation.kernels.size);
        bytes as u64 <= limit && !self.has_many_workers(machine, flat, bytes)
    }
}

/// Whether a call may write its output before all indices are checked. The output must already hold
/// the data. In addition, the output must be new memory, which may hold any values after an error,
/// or an index out of bounds must not be an error.
pub(super) fn may_write_unchecked(is_new: bool, copies_data: bool, bounds: Bounds) -> bool {
    (is_new || !bounds.can_fail()) && !copies_data
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

/// In debug builds, records `route` as the route of the last call on the calling thread.
#[inline(always)]
pub(crate) fn note(route: Route) {
    #[cfg(debug_assertions)]
    LAST.set(Some(route));
    #[cfg(not(debug_assertions))]
    let _ = route;
}

/// Returns the route (code path) of the last call on the calling thread, and clears the stored
/// route. Tests of [`Explanation`]s use this function.
///
/// [`Explanation`]: crate::Explanation
#[cfg(debug_assertions)]
#[doc(hidden)]
pub fn last_route() -> Option<Route> {
    LAST.take()
}
