//! Block tridiagonal: solves along the lines of a square grid, in one direction and then in the other.
//!
//! A step applies both operators to the grid and solves for the result, so the error of each step is known.

use std::thread;

use crate::barrier::SpinBarrier;
use crate::shared::SharedVec;
use crate::{Outcome, part};

/// Cells of a line, and lines in each direction.
const CELLS: usize = 240;
/// Components of a cell.
const SIZE: usize = 3;
/// Largest error of a step.
const TOLERANCE: f64 = 1e-10;

type Block = [[f64; SIZE]; SIZE];
type Cell = [f64; SIZE];

/// The operator along a line: three blocks for each cell.
struct Operator {
    lower: Vec<Block>,
    middle: Vec<Block>,
    upper: Vec<Block>,
}

impl Operator {
    /// Returns an operator with dominant middle blocks, so that it can be solved without pivots.
    fn new(salt: usize) -> Operator {
        let block = |diagonal: f64, cell: usize, kind: usize| -> Block {
            std::array::from_fn(|row| {
                std::array::from_fn(|column| {
                    let mixed = (7 * cell + 3 * row + 5 * column + 11 * kind + salt) % 13;
                    let small = mixed as f64 / 130.0 - 0.05;
                    if row == column { diagonal + small } else { small }
                })
            })
        };
        let blocks =
            |diagonal: f64, kind: usize| (0..CELLS).map(|cell| block(diagonal, cell, kind)).collect();
        Operator { lower: blocks(-0.5, 0), middle: blocks(2.0, 1), upper: blocks(-0.5, 2) }
    }

    fn apply(&self, line: &[Cell], result: &mut [Cell]) {
        for cell in 0..CELLS {
            let mut sum = times(&self.middle[cell], line[cell]);
            if cell > 0 {
                sum = plus(sum, times(&self.lower[cell], line[cell - 1]));
            }
            if cell + 1 < CELLS {
                sum = plus(sum, times(&self.upper[cell], line[cell + 1]));
            }
            result[cell] = sum;
        }
    }

    /// Solves for the line with the image `line`, in place, by block elimination.
    fn solve(&self, line: &mut [Cell], factors: &mut [Block]) {
        for cell in 0..CELLS {
            let (mut pivot, mut right) = (self.middle[cell], line[cell]);
            if cell > 0 {
                pivot = less(&pivot, &product(&self.lower[cell], &factors[cell - 1]));
                let carried = times(&self.lower[cell], line[cell - 1]);
                right = std::array::from_fn(|row| right[row] - carried[row]);
            }
            let inverse = inverse(&pivot);
            factors[cell] = product(&inverse, &self.upper[cell]);
            line[cell] = times(&inverse, right);
        }
        for cell in (0..CELLS - 1).rev() {
            let carried = times(&factors[cell], line[cell + 1]);
            line[cell] = std::array::from_fn(|row| line[cell][row] - carried[row]);
        }
    }
}

fn times(block: &Block, cell: Cell) -> Cell {
    std::array::from_fn(|row| (0..SIZE).map(|at| block[row][at] * cell[at]).sum())
}

fn plus(one: Cell, other: Cell) -> Cell {
    std::array::from_fn(|row| one[row] + other[row])
}

fn product(one: &Block, other: &Block) -> Block {
    std::array::from_fn(|row| {
        std::array::from_fn(|column| (0..SIZE).map(|at| one[row][at] * other[at][column]).sum())
    })
}

fn less(one: &Block, other: &Block) -> Block {
    std::array::from_fn(|row| std::array::from_fn(|column| one[row][column] - other[row][column]))
}

/// Returns the inverse by cofactors.
fn inverse(block: &Block) -> Block {
    let cofactor = |row: usize, column: usize| {
        let at = |r: usize, c: usize| block[(row + r) % SIZE][(column + c) % SIZE];
        at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1)
    };
    let determinant: f64 = (0..SIZE).map(|column| block[0][column] * cofactor(0, column)).sum();
    std::array::from_fn(|row| std::array::from_fn(|column| cofactor(column, row) / determinant))
}

/// What the threads share.
struct Grid {
    barrier: SpinBarrier,
    /// Cells by row, column and component.
    cells: SharedVec,
    rows: Operator,
    columns: Operator,
}

pub(crate) fn run(rounds: u32, threads: usize) -> Outcome {
    let threads = threads.min(CELLS);
    let grid = Grid {
        barrier: SpinBarrier::new(threads),
        cells: SharedVec::new(CELLS * CELLS * SIZE, 0.0),
        rows: Operator::new(1),
        columns: Operator::new(2),
    };
    for row in 0..CELLS {
        let line: Vec<Cell> = (0..CELLS).map(|column| first(row, column)).collect();
        grid.set(|at| (row, at), &line);
    }
    let errors: Vec<f64> = thread::scope(|scope| {
        let start = |thread| {
            let grid = &grid;
            scope.spawn(move || grid.steps(rounds, part(CELLS, threads, thread)))
        };
        let running: Vec<_> = (0..threads).map(start).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or(f64::NAN)).collect()
    });
    // A comparison with a number that is none fails.
    let verified = errors.iter().all(|error| *error < TOLERANCE);
    let sum: f64 = (0..CELLS * CELLS * SIZE).map(|at| grid.cells.get(at)).sum();
    let corner = grid.cells.get(0);
    Outcome { figures: [sum, corner], verified }
}

/// Returns a cell of the grid before the first step.
fn first(row: usize, column: usize) -> Cell {
    std::array::from_fn(|at| ((17 * row + 31 * column + 7 * at) % 101) as f64 / 101.0)
}

impl Grid {
    fn set(&self, place: impl Fn(usize) -> (usize, usize), line: &[Cell]) {
        for (at, cell) in line.iter().enumerate() {
            let (row, column) = place(at);
            for (component, value) in cell.iter().enumerate() {
                self.cells.set((row * CELLS + column) * SIZE + component, *value);
            }
        }
    }

    fn get(&self, place: impl Fn(usize) -> (usize, usize), line: &mut [Cell]) {
        for (at, cell) in line.iter_mut().enumerate() {
            let (row, column) = place(at);
            *cell =
                std::array::from_fn(|component| self.cells.get((row * CELLS + column) * SIZE + component));
        }
    }

    /// Makes the steps for some lines of each direction, and returns the largest error.
    fn steps(&self, rounds: u32, lines: std::ops::Range<usize>) -> f64 {
        let mut known = vec![[[0.0; SIZE]; CELLS]; lines.len()];
        let (mut line, mut image) = (vec![[0.0; SIZE]; CELLS], vec![[0.0; SIZE]; CELLS]);
        let mut factors = vec![[[0.0; SIZE]; SIZE]; CELLS];
        let mut worst = 0.0_f64;
        for _ in 0..rounds {
            for (row, known) in lines.clone().zip(&mut known) {
                self.get(|at| (row, at), known);
                self.rows.apply(known, &mut image);
                self.set(|at| (row, at), &image);
            }
            self.barrier.wait();
            for column in lines.clone() {
                self.get(|at| (at, column), &mut line);
                self.columns.apply(&line, &mut image);
                self.columns.solve(&mut image, &mut factors);
                self.set(|at| (at, column), &image);
            }
            self.barrier.wait();
            for (row, known) in lines.clone().zip(&known) {
                self.get(|at| (row, at), &mut line);
                self.rows.solve(&mut line, &mut factors);
                worst = line
                    .iter()
                    .zip(known)
                    .fold(worst, |worst, (found, known)| worst.max(distance(*found, *known)));
                for cell in &mut line {
                    *cell = next(*cell);
                }
                self.set(|at| (row, at), &line);
            }
        }
        worst
    }
}

/// Returns the largest difference of two cells, or infinity if one is no number.
fn distance(one: Cell, other: Cell) -> f64 {
    let apart =
        |(one, other): (f64, f64)| if (one - other).is_nan() { f64::INFINITY } else { (one - other).abs() };
    one.into_iter().zip(other).map(apart).fold(0.0, f64::max)
}

/// Returns the cell for the next step: its components mixed, so that each step has other numbers.
fn next(cell: Cell) -> Cell {
    std::array::from_fn(|at| 0.5 * cell[at] + 0.4 * cell[(at + 1) % SIZE] + 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_times_its_inverse_is_the_identity() {
        let block = [[2.0, 0.3, -0.1], [0.2, 1.5, 0.4], [-0.3, 0.1, 1.8]];
        let identity = product(&block, &inverse(&block));
        for (row, values) in identity.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let expected = if row == column { 1.0 } else { 0.0 };
                assert!((value - expected).abs() < 1e-12, "{row}, {column}: {value}");
            }
        }
    }

    #[test]
    fn a_solve_reverses_its_operator() {
        let operator = Operator::new(4);
        let line: Vec<Cell> = (0..CELLS).map(|at| first(3, at)).collect();
        let mut image = [[0.0; SIZE]; CELLS];
        operator.apply(&line, &mut image);
        operator.solve(&mut image, &mut vec![[[0.0; SIZE]; SIZE]; CELLS]);
        let worst = line.iter().zip(&image).map(|(one, other)| distance(*one, *other)).fold(0.0, f64::max);
        assert!(worst < 1e-12, "{worst}");
    }

    #[test]
    fn a_number_that_is_none_is_an_error() {
        assert!(distance([f64::NAN, 0.0, 0.0], [0.0; SIZE]) > TOLERANCE);
    }
}
