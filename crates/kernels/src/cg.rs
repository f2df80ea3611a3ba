//! Conjugate gradient: inverse iteration on a random sparse matrix, symmetric and positive definite.
//!
//! As in the NAS kernel CG, each round solves A z = x by 25 iterations without preconditioner, and continues with
//! z / |z|. The matrix is another one.

use std::ops::Range;
use std::thread;

use crate::barrier::SpinBarrier;
use crate::shared::{SharedSum, SharedVec};
use crate::{Outcome, part};

const ROWS: usize = 14_000;
/// Elements that are drawn for each row; each appears twice, since the matrix is symmetric.
const DRAWN: usize = 5;
/// Excess of each diagonal element over the sum of its row.
const EXCESS: f64 = 1.0;
const ITERATIONS: u32 = 25;
/// Blocks of rows. The sums of blocks are added in order, so the threads do not change a result.
const BLOCKS: usize = 70;
/// Largest relative residual of a solve.
const TOLERANCE: f64 = 1e-7;

/// A sparse matrix by rows.
struct Matrix {
    /// The first element of each row, and the end.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Matrix {
    /// Returns a matrix with a diagonal above the sums of its rows, so it is positive definite.
    fn new() -> Matrix {
        let mut rows: Vec<Vec<(u32, f64)>> = vec![Vec::new(); ROWS];
        let mut state = 314_159_265_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for row in 0..ROWS {
            for _ in 0..DRAWN {
                // Below the number of rows, and 31 bits.
                #[allow(clippy::cast_possible_truncation)]
                let (column, value) =
                    ((draw() % ROWS as u64) as usize, (draw() as f64) / (1_u64 << 30) as f64 - 1.0);
                if column != row {
                    rows[row].push((number(column), value));
                    rows[column].push((number(row), value));
                }
            }
        }
        let mut matrix = Matrix { starts: vec![0], columns: vec![], values: vec![] };
        for (row, mut elements) in rows.into_iter().enumerate() {
            let sum: f64 = elements.iter().map(|(_, value)| value.abs()).sum();
            elements.push((number(row), sum + EXCESS));
            elements.sort_by_key(|(column, _)| *column);
            matrix.columns.extend(elements.iter().map(|(column, _)| *column));
            matrix.values.extend(elements.iter().map(|(_, value)| *value));
            matrix.starts.push(matrix.columns.len());
        }
        matrix
    }

    fn row_times(&self, row: usize, vector: &SharedVec) -> f64 {
        let elements = self.starts[row]..self.starts[row + 1];
        elements.map(|at| self.values[at] * vector.get(self.columns[at] as usize)).sum()
    }
}

/// Returns the number of a row, of which there are fewer than 2^32.
#[allow(clippy::cast_possible_truncation)]
fn number(row: usize) -> u32 {
    row as u32
}

/// What the threads share.
struct Solver {
    matrix: Matrix,
    barrier: SpinBarrier,
    /// The direction of the search, and other vectors that are multiplied by the matrix.
    direction: SharedVec,
    /// Two sums in turns: a thread sets one while another still reads the other.
    sums: [SharedSum; 2],
}

/// The vectors of one thread, for its rows.
struct Own {
    blocks: Range<usize>,
    rows: Range<usize>,
    x: Vec<f64>,
    z: Vec<f64>,
    residual: Vec<f64>,
    product: Vec<f64>,
    /// The sum of the next turn.
    turn: usize,
}

pub(crate) fn run(rounds: u32, threads: usize) -> Outcome {
    let threads = threads.min(BLOCKS);
    let solver = Solver {
        matrix: Matrix::new(),
        barrier: SpinBarrier::new(threads),
        direction: SharedVec::new(ROWS, 0.0),
        sums: [SharedSum::new(BLOCKS), SharedSum::new(BLOCKS)],
    };
    let results: Vec<Option<(f64, f64)>> = thread::scope(|scope| {
        let start = |thread| {
            let solver = &solver;
            scope.spawn(move || solver.rounds(rounds, Own::new(part(BLOCKS, threads, thread))))
        };
        let running: Vec<_> = (0..threads).map(start).collect();
        running.into_iter().map(|thread| thread.join().ok()).collect()
    });
    // All threads have the same sums.
    let (eigenvalue, residual) = results[0].unwrap_or((f64::NAN, f64::NAN));
    // By Gershgorin, no eigenvalue is below the excess.
    let verified = residual < TOLERANCE && eigenvalue > EXCESS;
    Outcome { figures: [eigenvalue, residual], verified }
}

impl Own {
    fn new(blocks: Range<usize>) -> Own {
        let rows = blocks.start * ROWS / BLOCKS..blocks.end * ROWS / BLOCKS;
        let zeros = || vec![0.0; rows.len()];
        Own {
            x: vec![1.0; rows.len()],
            z: zeros(),
            residual: zeros(),
            product: zeros(),
            turn: 0,
            blocks,
            rows,
        }
    }
}

impl Solver {
    /// Returns the eigenvalue of the last round, and the largest relative residual.
    fn rounds(&self, rounds: u32, mut own: Own) -> (f64, f64) {
        let (mut eigenvalue, mut worst) = (0.0, 0.0_f64);
        for _ in 0..rounds {
            worst = worst.max(self.solve(&mut own));
            let along = self.dot(&mut own, |own, at| own.x[at] * own.z[at]);
            let square = self.dot(&mut own, |own, at| own.z[at] * own.z[at]);
            let norm = self.dot(&mut own, |own, at| own.x[at] * own.x[at]);
            eigenvalue = norm / along;
            own.x.iter_mut().zip(&own.z).for_each(|(x, z)| *x = z / square.sqrt());
            self.barrier.wait();
        }
        (eigenvalue, worst)
    }

    /// Solves A z = x, and returns the relative residual.
    fn solve(&self, own: &mut Own) -> f64 {
        own.z.fill(0.0);
        own.residual.copy_from_slice(&own.x);
        self.publish(own, |own, at| own.x[at]);
        let mut square = self.dot(own, |own, at| own.residual[at] * own.residual[at]);
        for _ in 0..ITERATIONS {
            self.multiply(own);
            let rows = own.rows.start;
            let curvature = self.dot(own, |own, at| self.direction.get(rows + at) * own.product[at]);
            let step = square / curvature;
            for at in 0..own.rows.len() {
                own.z[at] += step * self.direction.get(rows + at);
                own.residual[at] -= step * own.product[at];
            }
            let next = self.dot(own, |own, at| own.residual[at] * own.residual[at]);
            let ratio = next / square;
            square = next;
            self.publish(own, |own, at| own.residual[at] + ratio * self.direction.get(rows + at));
            self.barrier.wait();
        }
        // The true residual, and not that of the recurrence.
        self.publish(own, |own, at| own.z[at]);
        self.barrier.wait();
        self.multiply(own);
        let left = |own: &Own, at: usize| own.x[at] - own.product[at];
        let rest = self.dot(own, |own, at| left(own, at) * left(own, at));
        let all = self.dot(own, |own, at| own.x[at] * own.x[at]);
        (rest / all).sqrt()
    }

    /// Sets the thread's rows of the direction.
    fn publish(&self, own: &Own, value: impl Fn(&Own, usize) -> f64) {
        for at in 0..own.rows.len() {
            self.direction.set(own.rows.start + at, value(own, at));
        }
    }

    /// Multiplies the direction by the thread's rows.
    fn multiply(&self, own: &mut Own) {
        for at in 0..own.rows.len() {
            own.product[at] = self.matrix.row_times(own.rows.start + at, &self.direction);
        }
    }

    /// Returns a sum over all rows, in the order of the blocks.
    fn dot(&self, own: &mut Own, term: impl Fn(&Own, usize) -> f64) -> f64 {
        let sum = &self.sums[own.turn];
        own.turn = 1 - own.turn;
        for block in own.blocks.clone() {
            let rows = block * ROWS / BLOCKS..(block + 1) * ROWS / BLOCKS;
            sum.set(block, rows.map(|row| term(own, row - own.rows.start)).sum());
        }
        sum.reduce(&self.barrier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_is_symmetric_and_its_diagonal_dominates() {
        let matrix = Matrix::new();
        let entry = |row: usize, column: usize| -> f64 {
            let elements = matrix.starts[row]..matrix.starts[row + 1];
            elements.filter(|at| matrix.columns[*at] as usize == column).map(|at| matrix.values[at]).sum()
        };
        for row in (0..ROWS).step_by(500) {
            let elements = matrix.starts[row]..matrix.starts[row + 1];
            let columns: Vec<usize> = elements.map(|at| matrix.columns[at] as usize).collect();
            let others: f64 =
                columns.iter().filter(|column| **column != row).map(|column| entry(row, *column).abs()).sum();
            assert!(entry(row, row) > others / 2.0, "row {row}");
            for column in columns {
                assert!((entry(row, column) - entry(column, row)).abs() < 1e-12, "{row}, {column}");
            }
        }
    }

    /// By Gershgorin, all eigenvalues are between the excess and twice the largest diagonal element.
    #[test]
    fn the_eigenvalue_is_within_its_bounds() {
        let outcome = run(3, 2);
        assert!(outcome.verified && outcome.figures[0] < 40.0, "{outcome:?}");
    }
}
