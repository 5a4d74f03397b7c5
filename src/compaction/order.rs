//! Orders moves so that each row is read before it is overwritten.
//!
//! Each destination has one move. A move *frees* its source: if another move overwrites this row,
//! the other move must come later. It is the *parent* of the first move. A move has at most one
//! parent, so moves form trees, and trees around one cycle. This module knows row numbers. It does
//! not know tensors or tasks.

use super::lists::Lists;
use crate::error::ScatterError;
use crate::memory::{out_of_memory, with_room};
use crate::plan::Sorted;

/// Mark of a missing move.
const NONE: usize = usize::MAX;

/// A move of one row onto another row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// Consecutive moves that must run in their order. No move outside the group writes a row that the
/// group reads or writes, or reads a row that the group writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Position of the first move.
    pub(super) start: usize,
    /// Position after the last move.
    pub(super) end: usize,
    /// Whether the first move overwrites the source of the last move, or another move before the
    /// last one does. The source of the last move must then be saved before the first move.
    pub(super) is_cycle: bool,
}

/// Ordered moves. No two moves have the same destination, and no move is from a row to itself.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) moves: Vec<Move>,
    /// Number of single moves at the start of `moves`. No other move writes a row that a single
    /// move reads or writes, or reads a row that a single move writes.
    pub(super) singles: usize,
    /// The groups of all other moves, in the order of `moves`.
    pub(super) groups: Vec<Group>,
    /// Number of moves of the largest group. 1 without groups.
    pub(super) largest: usize,
}

impl Order {
    /// Orders the moves of `lists`. Of several moves to one row, only the last one is kept. `rows`
    /// is the number of rows of the tensors.
    pub(super) fn new(lists: &Lists, rows: usize) -> Result<Self, ScatterError> {
        let moves = last_moves(lists, rows)?;
        let parents = parents_of(&moves)?;
        if parents.iter().all(|&parent| parent == NONE) {
            return Ok(Self {
                singles: moves.len(),
                moves,
                groups: Vec::new(),
                largest: 1,
            });
        }
        Forest::new(&moves, parents)?.into_order()
    }

    /// Returns the first position from `position` on at which the list of moves can be cut: no
    /// group has moves on both sides.
    pub(super) fn cut_from(&self, position: usize) -> usize {
        if position <= self.singles {
            return position;
        }
        let ended = self.groups.partition_point(|group| group.end < position);
        self.groups.get(ended).map_or(position, |group| group.end)
    }
}

/// Returns the last move to each row, in ascending order of rows, without moves from a row to
/// itself.
fn last_moves(lists: &Lists, rows: usize) -> Result<Vec<Move>, ScatterError> {
    let listed = lists.from.len();
    let number = |tuple| lists.to.get(tuple);
    let is_ascending = (1..listed).all(|tuple| number(tuple - 1) < number(tuple));
    let mut sorted = Sorted::new(&lists.to, rows as u64, is_ascending)?;
    sorted.keep_last(&lists.to);
    let mut moves = with_room(sorted.len(listed))?;
    for position in 0..sorted.len(listed) {
        let (to, tuple) = sorted.get(&lists.to, position);
        // Row numbers are below `rows`, so the conversions are exact.
        let row = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (from, to) = (row(lists.from[tuple]), row(to));
        if from != to {
            moves.push(Move { from, to });
        }
    }
    Ok(moves)
}

/// Returns for each move the position of its parent: the move that overwrites its source. `moves`
/// are in ascending order of destinations.
fn parents_of(moves: &[Move]) -> Result<Vec<usize>, ScatterError> {
    let mut parents = with_room(moves.len())?;
    let (Some(first), Some(last)) = (moves.first(), moves.last()) else {
        return Ok(parents);
    };
    let written = first.to..=last.to;
    parents.extend(moves.iter().map(|&Move { from, .. }| {
        if !written.contains(&from) {
            return NONE;
        }
        moves
            .binary_search_by_key(&from, |other| other.to)
            .unwrap_or(NONE)
    }));
    Ok(parents)
}

/// Moves with their parents and children.
struct Forest<'m> {
    moves: &'m [Move],
    parent: Vec<usize>,
    /// A child of each move. The other children follow through `sibling`.
    child: Vec<usize>,
    sibling: Vec<usize>,
    /// Whether a move is in `order`, or on the path of the search for the current cycle.
    seen: Vec<bool>,
    order: Order,
}

impl<'m> Forest<'m> {
    fn new(moves: &'m [Move], parent: Vec<usize>) -> Result<Self, ScatterError> {
        let mut forest = Self {
            moves,
            child: filled(moves.len(), NONE)?,
            sibling: filled(moves.len(), NONE)?,
            seen: filled(moves.len(), false)?,
            order: Order {
                moves: with_room(moves.len())?,
                largest: 1,
                ..Order::default()
            },
            parent,
        };
        for at in (0..moves.len()).rev() {
            if let parent @ 0..NONE = forest.parent[at] {
                forest.sibling[at] = std::mem::replace(&mut forest.child[parent], at);
            }
        }
        Ok(forest)
    }

    /// Adds the single moves, then the trees, then the trees around cycles.
    fn into_order(mut self) -> Result<Order, ScatterError> {
        let all = 0..self.moves.len();
        let is_root = |forest: &Self, at: usize| forest.parent[at] == NONE;
        for at in all.clone() {
            if is_root(&self, at) && self.child[at] == NONE {
                self.order.moves.push(self.moves[at]);
                self.seen[at] = true;
            }
        }
        self.order.singles = self.order.moves.len();
        for at in all.clone() {
            if is_root(&self, at) && !self.seen[at] {
                self.add_group(at, false)?;
            }
        }
        for at in all {
            if !self.seen[at] {
                let last = self.cut_cycle(at);
                self.add_group(last, true)?;
            }
        }
        Ok(self.order)
    }

    /// Finds a move on the cycle of the component of `start`, and cuts the cycle: the move no
    /// longer has a parent. Returns this move, which then is the root of the component.
    fn cut_cycle(&mut self, start: usize) -> usize {
        // No move of the component was seen before. The first move that is seen twice is on the
        // cycle.
        let mut root = start;
        while !std::mem::replace(&mut self.seen[root], true) {
            root = self.parent[root];
        }
        let parent = std::mem::replace(&mut self.parent[root], NONE);
        let next = self.sibling[root];
        if self.child[parent] == root {
            self.child[parent] = next;
        } else {
            let mut before = self.child[parent];
            while self.sibling[before] != root {
                before = self.sibling[before];
            }
            self.sibling[before] = next;
        }
        root
    }

    /// Adds the tree of `root` as a group, each move after all its children.
    fn add_group(&mut self, root: usize, is_cycle: bool) -> Result<(), ScatterError> {
        let start = self.order.moves.len();
        let mut at = root;
        'tree: loop {
            self.order.moves.push(self.moves[at]);
            self.seen[at] = true;
            if self.child[at] != NONE {
                at = self.child[at];
                continue;
            }
            while at == root || self.sibling[at] == NONE {
                if at == root {
                    break 'tree;
                }
                at = self.parent[at];
            }
            at = self.sibling[at];
        }
        let end = self.order.moves.len();
        // So far, each move is before its children.
        self.order.moves[start..].reverse();
        self.order.largest = self.order.largest.max(end - start);
        let groups = &mut self.order.groups;
        if groups.len() == groups.capacity() {
            let more = groups.len().max(4);
            (groups.try_reserve_exact(more))
                .map_err(|_| out_of_memory::<Group>(groups.len() + more))?;
        }
        groups.push(Group {
            start,
            end,
            is_cycle,
        });
        Ok(())
    }
}

/// Returns a list of `len` equal values.
fn filled<T: Copy>(len: usize, value: T) -> Result<Vec<T>, ScatterError> {
    let mut values = with_room(len)?;
    values.resize(len, value);
    Ok(values)
}
