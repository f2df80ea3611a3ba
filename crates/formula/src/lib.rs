//! Formulas over named values: an order of the queue (`wait / estimate`), a claim about results (`a.wait < 0.9 * b.wait`).
//! Parsed once, evaluated often, with the same bits on every platform.
//!
//! ```
//! use miserly_formula::Formula;
//!
//! let names = ["wait", "estimate", "procs"];
//! let wfp3 = Formula::parse("(wait/estimate)^3 * procs", &names)?;
//! assert_eq!(wfp3.eval(&[7200.0, 3600.0, 4.0]), 32.0);
//! assert_eq!(wfp3.to_string(), "(wait / estimate) ^ 3 * procs");
//! assert!(wfp3.uses(0), "it changes as time goes by");
//! # Ok::<(), miserly_formula::FormulaError>(())
//! ```
//!
//! # The language
//! From what binds least to what binds most:
//!
//! | written | meaning |
//! |---|---|
//! | `a or b` | 1 if either holds, else 0. A value holds if it is neither 0 nor NaN |
//! | `a and b` | 1 if both hold, else 0 |
//! | `not a` | 1 if `a` does not hold, else 0 |
//! | `a < b`, `<=`, `>`, `>=`, `==`, `!=` | 1 or 0. Two sides: `a < b < c` is an error |
//! | `a + b`, `a - b` | from the left |
//! | `a * b`, `a / b` | from the left; division by 0 gives an infinity, and 0 / 0 is NaN |
//! | `-a` | `-a^2` is `-(a^2)` |
//! | `a ^ b` | from the right. A whole `b` from -16 to 16 is multiplied out from the left, and 1 over that below 0 |
//! | `min(a, b)`, `max(a, b)` | NaN if either is; the first of two that are equal |
//! | `abs`, `sqrt`, `ln`, `log2`, `log10`, `exp`, `floor`, `ceil` | of one value |
//! | `if(c, a, b)` | `a` if `c` holds, else `b` |
//! | `870`, `.5`, `2.56e4` | numbers, without units |
//!
//! NaN goes through everything but the comparisons (of which only `!=` is true of it), the words and `if`, and `x^0`, which is 1.
//! [`Direction::rank`] and [`ordered_key`] turn a value into an integer for a queue, NaN having its place too.
//!
//! # The same bits everywhere
//! The standard library leaves logarithms, `exp` and `pow` to the platform, whose results may differ in the last bit; a
//! job's place in a queue could turn on that bit. Here they come from the `libm` crate, which computes them with IEEE 754 basic operations
//! only. The four operations, `sqrt`, `floor` and `ceil` are exact by that standard. (32-bit x86 without SSE2 has no such
//! arithmetic and is not supported.) Constant parts are worked out when the formula is parsed, by the same functions.
//!
//! # Ties
//! Floating-point arithmetic gives equal values different bits: `5 * (wait + estimate) / estimate + 0.2 * procs` of two jobs may
//! differ in the last bit though both are 2399/180. [`Formula::eval_exactly`] computes with fractions, takes each number as it is written
//! in decimal, and rounds once. So values that are equal tie, and values that differ keep their order, unless the floats
//! nearest to them are equal: then they tie too. Formulas with `sqrt`, logarithms, `exp` or a power that is not multiplied
//! out have floating-point values only.
//!
//! # Why not a crate that exists
//! Nanoseconds per evaluation on a virtual machine with two cores and other work on it, so only to be compared within a line:
//!
//! | | by hand | this | exmex 0.21 | fasteval 0.2 | meval 0.2 | evalexpr 11.3 |
//! |---|--:|--:|--:|--:|--:|--:|
//! | `wait / estimate` | 2 | 12 | 45 | 25 | 47 | 359 |
//! | `(wait / estimate)^3 * procs` | 2 | 20 | 61 | 76 | 85 | 556 |
//! | `wait / (log2(procs) * estimate)` | 10 | 35 | 51 | 53 | 84 | 567 |
//! | `log10(estimate) * procs + 870 * log10(submit)` | 20 | 45 | 54 | 73 | 117 | 803 |
//!
//! ```sh
//! cargo bench --manifest-path crates/formula/benches/rivals/Cargo.toml -- --quick
//! ```
//!
//! Speed would not decide it; the bits do: all of them take the platform's logarithms and powers. (`ln(3)` by libm and by
//! a common C library differ in the last bit.) Besides, `evalexpr` is under the AGPL from version 12 on; `fasteval` has had no
//! release since January 2020, and like `meval`, which is on the first version of its parser library, has neither `log2` nor
//! `log10`. `exmex` is kept up and takes functions of one's own, but it orders the names by the alphabet and takes 13 s to
//! compile here with its regular expressions, against 1 s for libm. The language is small; its hard part, the logarithms, is a
//! library's.
//!
//! # Limits
//! [`Formula::MOST_NESTED`], [`Formula::MOST_WAITING`] and [`Formula::MOST_STEPS`] bound a formula, so that no text overflows the stack or takes long.

mod display;
mod error;
mod exact;
mod formula;
mod fraction;
mod lexer;
mod op;
mod parser;
pub mod presets;
mod program;
mod rank;

pub use error::{FormulaError, Problem};
pub use formula::Formula;
pub use fraction::Fraction;
pub use rank::{Direction, ordered_key};
