//! Formulas over named values, with the same bits on every platform.
//!
//! A formula may order the queue (`wait / estimate`) or state a claim about results
//! (`a.wait < 0.9 * b.wait`). A formula is parsed once and evaluated often.
//!
//! ```
//! use miserly_formula::Formula;
//!
//! let names = ["wait", "estimate", "procs"];
//! let wfp3 = Formula::parse("(wait/estimate)^3 * procs", &names)?;
//! assert_eq!(wfp3.eval(&[7200.0, 3600.0, 4.0]), 32.0);
//! assert_eq!(wfp3.to_string(), "(wait / estimate) ^ 3 * procs");
//! assert!(wfp3.uses(0), "its value changes with time");
//! # Ok::<(), miserly_formula::FormulaError>(())
//! ```
//!
//! # The language
//! Operators by increasing precedence:
//!
//! | written | meaning |
//! |---|---|
//! | `a or b` | 1 if either is true, else 0. A value is true if it is neither 0 nor NaN |
//! | `a and b` | 1 if both are true, else 0 |
//! | `not a` | 1 if `a` is false, else 0 |
//! | `a < b`, `<=`, `>`, `>=`, `==`, `!=` | 1 or 0. Two sides: `a < b < c` is an error |
//! | `a + b`, `a - b` | left-associative |
//! | `a * b`, `a / b` | left-associative; division by 0 gives an infinity, and 0 / 0 is NaN |
//! | `-a` | `-a^2` is `-(a^2)` |
//! | `a ^ b` | right-associative. A whole `b` from -16 to 16 multiplies from the left; negative ones divide 1 |
//! | `min(a, b)`, `max(a, b)` | NaN if either is; the first of two equal values |
//! | `abs`, `sqrt`, `ln`, `log2`, `log10`, `exp`, `floor`, `ceil` | functions of one value |
//! | `if(c, a, b)` | `a` if `c` is true, else `b` |
//! | `870`, `.5`, `2.56e4` | numbers, without units |
//!
//! NaN propagates through all operations except comparisons, logical operators, `if`, and `x^0`,
//! which is 1. Of the comparisons with NaN, only `!=` is true. [`Direction::rank`] and
//! [`ordered_key`] convert a value, including NaN, to an integer for a queue.
//!
//! # The same bits everywhere
//! The standard library leaves logarithms, `exp` and `pow` to the platform, whose results may
//! differ in the last bit. A job's place in a queue could depend on that bit. Here they come from
//! the `libm` crate, which uses only IEEE 754 basic operations. The four operations, `sqrt`,
//! `floor` and `ceil` are exact by that standard. 32-bit x86 without SSE2 has no such arithmetic
//! and is not supported. The same functions evaluate constant parts when the formula is parsed.
//!
//! # Ties
//! Floating-point arithmetic may give equal values different bits. Two jobs may both have the value
//! 2399/180 of `5 * (wait + estimate) / estimate + 0.2 * procs` and differ in the last bit.
//! [`Formula::eval_exactly`] computes with fractions, reads each number as its decimal, and rounds
//! once. Equal values therefore tie. Different values keep their order unless they round to the same
//! float. Formulas with `sqrt`, logarithms, `exp` or a power that is not multiplied out have only
//! floating-point values.
//!
//! # Alternatives
//! Nanoseconds per evaluation on a busy virtual machine with two cores, comparable only within a
//! line:
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
//! Identical bits decide, not speed: all of these crates use the platform's logarithms and powers.
//! (`ln(3)` by libm and by a common C library differ in the last bit.) `evalexpr` is under the AGPL
//! from version 12 on. `fasteval` has had no release since January 2020. Like `meval`, which uses
//! the first version of its parser library, it has neither `log2` nor `log10`. `exmex` is
//! maintained and accepts custom functions, but it sorts the names. With its regular expressions it
//! compiles in 13 s here, against 1 s for libm. The language is small, and its hard part, the
//! logarithms, comes from a library.
//!
//! # Limits
//! [`Formula::MAX_NESTING`], [`Formula::MAX_WAITING`] and [`Formula::MAX_STEPS`] bound a formula.
//! No text therefore overflows the stack or takes long.

mod display;
mod error;
mod exact;

mod formula;
mod fraction;
mod integers;
mod interval;
mod lexer;
mod linear;
mod op;
mod parser;
pub mod presets;
mod program;
mod rank;

pub use error::{FormulaError, FormulaProblem};
pub use formula::Formula;
pub use fraction::Fraction;
pub use interval::Interval;
pub use linear::{Line, Linear};
pub use rank::{Direction, ordered_key};
