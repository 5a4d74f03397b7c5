//! Orders moves so that each row is read before it is overwritten.
//!
//! Each destination has one move. The *parent* of a move is the move that overwrites its source, if
//! there is one. The parent must run later. A move has at most one parent, so moves form trees, and
//! trees around one cycle. This module knows row numbers. It does not know tensors or tasks.

use super::lists::Lists;
use crate::error::ScatterError;
use crate::memory::{out_of_memory, with_room};
use crate::plan::Sorted;

/// Maximum length of a list of moves that is sorted by comparisons. For longer lists, a radix sort
/// is faster.
const SHORT_LIST: usize = 256;

/// Maximum number of rows for each move in a table with one entry for each row. If the destinations
/// lie farther apart, a binary search finds the move to a row.
const TABLE_ROWS: usize = 8;

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
    /// Whether a move before the last one overwrites the source of the last move. The source must
    /// then be saved before the first move.
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
    /// Orders the moves of `lists`. If several moves have one destination, only the last one is
    /// kept. `rows` is the number of rows of the tensors.
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
    let mut sorted = match listed {
        ..=SHORT_LIST if !is_ascending => Sorted::by_comparisons(&lists.to)?,
        _ => Sorted::new(&lists.to, rows as u64, is_ascending)?,
    };
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
    let (first, rows) = (first.to, last.to - first.to + 1);
    let sources = moves.iter().map(|&Move { from, .. }| from);
    if rows / TABLE_ROWS <= moves.len() {
        let mut writer = filled(rows, NONE)?;
        for (at, &Move { to, .. }) in moves.iter().enumerate() {
            writer[to - first] = at;
        }
        let of = |from: usize| writer.get(from.wrapping_sub(first)).copied();
        parents.extend(sources.map(|from| of(from).unwrap_or(NONE)));
    } else {
        let of = |from: usize| moves.binary_search_by_key(&from, |other| other.to);
        parents.extend(sources.map(|from| of(from).unwrap_or(NONE)));
    }
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

#[cfg(test)]
mod tests {
    use super::{Group, Move, Order, SHORT_LIST};
    use crate::TensorView;
    use crate::compaction::lists::Lists;
    use crate::reduction::{Bounds, Duplicates};

    fn order(from: &[usize], to: &[usize], rows: usize) -> Order {
        let (from, to) = (TensorView::from(from).into(), TensorView::from(to).into());
        let lists = Lists::read(&from, &to, rows, Bounds::Error, Duplicates::Allow);
        Order::new(&lists.expect("rows in range"), rows).expect("memory")
    }

    /// Runs the moves of one group, or of all single moves.
    fn run(rows: &mut [usize], moves: &[Move], is_cycle: bool) {
        let (last, before) = moves.split_last().expect("a move");
        let saved = rows[last.from];
        before
            .iter()
            .for_each(|&Move { from, to }| rows[to] = rows[from]);
        rows[last.to] = if is_cycle { saved } else { rows[last.from] };
    }

    /// Groups may run in any order, and single moves too.
    fn check(from: &[usize], to: &[usize], count: usize) -> Order {
        let order = order(from, to, count);
        let mut expected: Vec<usize> = (0..count).collect();
        from.iter()
            .zip(to)
            .for_each(|(&from, &to)| expected[to] = from);
        let mut rows: Vec<usize> = (0..count).collect();
        let mut next = order.singles;
        for group in &order.groups {
            assert_eq!(group.start, next, "the groups follow each other");
            assert!(group.end - group.start > 1, "a group of one move");
            assert!(group.end - group.start <= order.largest, "a larger group");
            next = group.end;
        }
        assert_eq!(next, order.moves.len(), "all moves");
        for group in order.groups.iter().rev() {
            run(
                &mut rows,
                &order.moves[group.start..group.end],
                group.is_cycle,
            );
        }
        for single in order.moves[..order.singles].iter().rev() {
            run(&mut rows, &[*single], false);
        }
        assert_eq!(rows, expected, "{from:?}, {to:?}");
        order
    }

    #[test]
    fn all_lists_of_up_to_four_moves() {
        let count = 4_usize;
        for len in 0..=4_u32 {
            for code in 0..count.pow(2 * len) {
                let digit = |place: u32| code / count.pow(place) % count;
                let from: Vec<usize> = (0..len).map(|at| digit(2 * at)).collect();
                let to: Vec<usize> = (0..len).map(|at| digit(2 * at + 1)).collect();
                check(&from, &to, count);
            }
        }
    }

    /// Lists on both sides of the length at which the sort changes, with destinations that lie
    /// close together and far apart.
    #[test]
    fn long_lists() {
        for len in [SHORT_LIST - 1, SHORT_LIST, SHORT_LIST + 1, 3 * SHORT_LIST] {
            for (count, scale) in [(len, 7), (8 * len, 11), (9 * len, 13), (100 * len, 8191)] {
                let list = |factor: usize| -> Vec<usize> {
                    (0..len)
                        .map(|at| (at * at + at * factor) * scale % count)
                        .collect()
                };
                check(&list(3), &list(5), count);
            }
        }
    }

    #[test]
    fn cycles_and_chains_are_groups() {
        let order = check(&[1, 2, 0, 9, 4, 5, 5], &[0, 1, 2, 8, 3, 4, 6], 10);
        assert_eq!(order.singles, 2, "rows 6 and 8");
        let chain = Group {
            start: 2,
            end: 4,
            is_cycle: false,
        };
        let cycle = Group {
            start: 4,
            end: 7,
            is_cycle: true,
        };
        assert_eq!(order.groups, [chain, cycle], "groups");
        let cuts = [0, 1, 2, 3, 4, 5, 6, 7].map(|position| order.cut_from(position));
        assert_eq!(cuts, [0, 1, 2, 4, 4, 7, 7, 7], "cuts");
    }
}
