//! Operations: their notation, precedence and meaning.

/// A step of a formula in postfix order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    /// A value in the text, finite and not negative.
    Number(f64),
    /// The value with this index.
    Name(usize),
    Unary(Unary),
    Binary(Binary),
    /// `if(c, a, b)`.
    Choose,
}

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Negate,
    Not,
    Abs,
    Sqrt,
    Ln,
    Log2,
    Log10,
    Exp,
    Floor,
    Ceil,
}

/// An operation on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Min,
    Max,
}

/// Precedence, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Or,
    And,
    Not,
    Compare,
    Sum,
    Product,
    Negate,
    Power,
    /// A number, a name, a call, or a pair of parentheses.
    Atom,
}

/// The notation of a binary operation, with the least precedence of an operand without parentheses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Infix {
    pub(crate) sign: &'static str,
    pub(crate) level: Level,
    pub(crate) left: Level,
    pub(crate) right: Level,
}

/// All functions by name.
pub(crate) const FUNCTIONS: [(&str, Op); 11] = [
    ("min", Op::Binary(Binary::Min)),
    ("max", Op::Binary(Binary::Max)),
    ("abs", Op::Unary(Unary::Abs)),
    ("sqrt", Op::Unary(Unary::Sqrt)),
    ("ln", Op::Unary(Unary::Ln)),
    ("log2", Op::Unary(Unary::Log2)),
    ("log10", Op::Unary(Unary::Log10)),
    ("exp", Op::Unary(Unary::Exp)),
    ("floor", Op::Unary(Unary::Floor)),
    ("ceil", Op::Unary(Unary::Ceil)),
    ("if", Op::Choose),
];

impl Op {
    /// Returns the number of operands.
    pub(crate) fn arity(self) -> usize {
        match self {
            Op::Number(_) | Op::Name(_) => 0,
            Op::Unary(_) => 1,
            Op::Binary(_) => 2,
            Op::Choose => 3,
        }
    }

    /// Returns the name, if the operation is a function.
    pub(crate) fn function(self) -> Option<&'static str> {
        FUNCTIONS.iter().find(|(_, op)| *op == self).map(|&(name, _)| name)
    }
}

impl Unary {
    #[inline]
    pub(crate) fn apply(self, x: f64) -> f64 {
        match self {
            Unary::Negate => -x,
            Unary::Not => truth(!is_true(x)),
            Unary::Abs => x.abs(),
            // Exact in IEEE 754, like the roundings, so no library is needed for equal bits.
            Unary::Sqrt => x.sqrt(),
            Unary::Floor => x.floor(),
            Unary::Ceil => x.ceil(),
            Unary::Ln => libm::log(x),
            Unary::Log2 => libm::log2(x),
            Unary::Log10 => libm::log10(x),
            Unary::Exp => libm::exp(x),
        }
    }
}

impl Binary {
    /// Returns the infix notation, if there is one.
    pub(crate) fn infix(self) -> Option<Infix> {
        use Level::{And, Compare, Not, Or, Product, Sum};
        let (sign, level, right) = match self {
            Binary::Or => ("or", Or, And),
            Binary::And => ("and", And, Not),
            Binary::Less => ("<", Compare, Sum),
            Binary::LessEqual => ("<=", Compare, Sum),
            Binary::Greater => (">", Compare, Sum),
            Binary::GreaterEqual => (">=", Compare, Sum),
            Binary::Equal => ("==", Compare, Sum),
            Binary::NotEqual => ("!=", Compare, Sum),
            Binary::Add => ("+", Sum, Product),
            Binary::Subtract => ("-", Sum, Product),
            Binary::Multiply => ("*", Product, Level::Negate),
            Binary::Divide => ("/", Product, Level::Negate),
            Binary::Power => ("^", Level::Power, Level::Negate),
            Binary::Min | Binary::Max => return None,
        };
        let left = match level {
            Compare => Sum,
            Level::Power => Level::Atom,
            chains => chains,
        };
        Some(Infix { sign, level, left, right })
    }

    #[inline]
    #[allow(clippy::float_cmp)] // What == asks for.
    pub(crate) fn apply(self, x: f64, y: f64) -> f64 {
        match self {
            Binary::Or => truth(is_true(x) || is_true(y)),
            Binary::And => truth(is_true(x) && is_true(y)),
            Binary::Less => truth(x < y),
            Binary::LessEqual => truth(x <= y),
            Binary::Greater => truth(x > y),
            Binary::GreaterEqual => truth(x >= y),
            Binary::Equal => truth(x == y),
            Binary::NotEqual => truth(x != y),
            Binary::Add => x + y,
            Binary::Subtract => x - y,
            Binary::Multiply => x * y,
            Binary::Divide => x / y,
            Binary::Power => power(x, y),
            Binary::Min => first_unless(y < x, x, y),
            Binary::Max => first_unless(y > x, x, y),
        }
    }
}

/// Evaluates `if(c, a, b)`.
#[inline]
pub(crate) fn choose(condition: f64, then: f64, otherwise: f64) -> f64 {
    if is_true(condition) { then } else { otherwise }
}

/// Returns whether a value is true: neither 0 nor NaN.
fn is_true(x: f64) -> bool {
    x != 0.0 && !x.is_nan()
}

fn truth(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

/// Returns `y` if it wins, else `x`; NaN if either is. `f64::min` drops NaN and leaves the sign of
/// zero open.
fn first_unless(second_wins: bool, x: f64, y: f64) -> f64 {
    if x.is_nan() {
        x
    } else if second_wins || y.is_nan() {
        y
    } else {
        x
    }
}

/// Largest absolute exponent that is multiplied out.
pub(crate) const MULTIPLIED_OUT: u32 = 16;

/// Returns `x^y`.
///
/// A whole `y` from -16 to 16 is multiplied out from the left, with 1 over the product if `y` is
/// negative. Otherwise the result is libm's `pow`.
#[inline]
#[allow(clippy::float_cmp, clippy::cast_possible_truncation)] // What is lost shows in the comparison.
fn power(x: f64, y: f64) -> f64 {
    let whole = y as i32;
    if f64::from(whole) != y || whole.unsigned_abs() > MULTIPLIED_OUT {
        return libm::pow(x, y);
    }
    let product = (0..whole.unsigned_abs()).fold(1.0, |product, _| product * x);
    if whole < 0 { 1.0 / product } else { product }
}
