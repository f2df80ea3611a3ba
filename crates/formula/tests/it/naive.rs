//! A formula as a tree, evaluated by walking it. Shares no code with the crate.

use proptest::prelude::*;
use proptest::sample::select;

pub(crate) const NAMES: [&str; 3] = ["wait", "estimate", "procs"];

#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Number(f64),
    Name(usize),
    Prefix(&'static str, Box<Tree>),
    Infix(Box<Tree>, &'static str, Box<Tree>),
    Call(&'static str, Vec<Tree>),
}

impl Tree {
    /// With a parenthesis around everything, and so without precedences.
    pub(crate) fn text(&self) -> String {
        match self {
            Tree::Number(value) => format!("{value:?}"),
            Tree::Name(index) => NAMES[*index].to_owned(),
            Tree::Prefix(sign, of) => format!("({sign} {})", of.text()),
            Tree::Infix(left, sign, right) => format!("({}{sign} {})", left.text() + " ", right.text()),
            Tree::Call(name, of) => {
                format!("{name}({})", of.iter().map(Tree::text).collect::<Vec<_>>().join(","))
            }
        }
    }

    /// Returns the tree with its numbers rounded down to small integers.
    pub(crate) fn whole(&self) -> Tree {
        let whole = |of: &Tree| Box::new(of.whole());
        match self {
            Tree::Number(value) => Tree::Number((value % 100.0).floor()),
            Tree::Name(index) => Tree::Name(*index),
            Tree::Prefix(sign, of) => Tree::Prefix(sign, whole(of)),
            Tree::Infix(left, sign, right) => Tree::Infix(whole(left), sign, whole(right)),
            Tree::Call(name, of) => Tree::Call(name, of.iter().map(Tree::whole).collect()),
        }
    }

    pub(crate) fn value(&self, names: &[f64]) -> f64 {
        match self {
            Tree::Number(value) => *value,
            Tree::Name(index) => names[*index],
            Tree::Prefix("-", of) => -of.value(names),
            Tree::Prefix(_, of) => number(!holds(of.value(names))),
            Tree::Infix(left, sign, right) => infix(left.value(names), sign, right.value(names)),
            Tree::Call(name, of) => call(name, &of.iter().map(|of| of.value(names)).collect::<Vec<_>>()),
        }
    }
}

fn holds(x: f64) -> bool {
    x.abs() > 0.0
}

fn number(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

#[allow(clippy::float_cmp)] // What is asked for.
fn infix(x: f64, sign: &str, y: f64) -> f64 {
    match sign {
        "or" => number(holds(x) || holds(y)),
        "and" => number(holds(x) && holds(y)),
        "<" => number(x < y),
        "<=" => number(x <= y),
        ">" => number(x > y),
        ">=" => number(x >= y),
        "==" => number(x == y),
        "!=" => number(x != y),
        "+" => x + y,
        "-" => x - y,
        "*" => x * y,
        "/" => x / y,
        "^" => power(x, y),
        _ => unreachable!("{sign}"),
    }
}

#[allow(clippy::float_cmp)] // What is asked for.
fn power(x: f64, y: f64) -> f64 {
    for whole in 0..=16 {
        let product: f64 = std::iter::repeat_n(x, whole).product();
        if y == f64::from(u8::try_from(whole).unwrap()) {
            return product;
        }
        if -y == f64::from(u8::try_from(whole).unwrap()) {
            return 1.0 / product;
        }
    }
    libm::pow(x, y)
}

fn call(name: &str, of: &[f64]) -> f64 {
    match (name, of) {
        ("min" | "max", [x, y]) if x.is_nan() || y.is_nan() => f64::NAN,
        ("min", [x, y]) => {
            if y < x {
                *y
            } else {
                *x
            }
        }
        ("max", [x, y]) => {
            if y > x {
                *y
            } else {
                *x
            }
        }
        ("if", [c, x, y]) => {
            if holds(*c) {
                *x
            } else {
                *y
            }
        }
        ("abs", [x]) => {
            if x.is_sign_negative() {
                -x
            } else {
                *x
            }
        }
        ("sqrt", [x]) => libm::sqrt(*x),
        ("ln", [x]) => libm::log(*x),
        ("log2", [x]) => libm::log2(*x),
        ("log10", [x]) => libm::log10(*x),
        ("exp", [x]) => libm::exp(*x),
        ("floor", [x]) => libm::floor(*x),
        ("ceil", [x]) => libm::ceil(*x),
        _ => unreachable!("{name} of {of:?}"),
    }
}

const SIGNS: [&str; 13] = ["or", "and", "<", "<=", ">", ">=", "==", "!=", "+", "-", "*", "/", "^"];
const OF_ONE: [&str; 8] = ["abs", "sqrt", "ln", "log2", "log10", "exp", "floor", "ceil"];

/// Small trees of everything, with numbers of which many are whole, equal or zero.
pub(crate) fn tree() -> impl Strategy<Value = Tree> {
    let number =
        prop_oneof![(0u8..20).prop_map(f64::from), 0.0..1e6, select(vec![1e-300, 1e300, 5e-324, f64::MAX])];
    let leaf = prop_oneof![number.prop_map(Tree::Number), (0..NAMES.len()).prop_map(Tree::Name)];
    leaf.prop_recursive(6, 40, 3, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            1 => (select(&["-", "not"][..]), boxed.clone()).prop_map(|(sign, of)| Tree::Prefix(sign, of)),
            4 => (boxed.clone(), select(&SIGNS[..]), boxed).prop_map(|(x, sign, y)| Tree::Infix(x, sign, y)),
            1 => (select(&OF_ONE[..]), inner.clone()).prop_map(|(name, x)| Tree::Call(name, vec![x])),
            1 => (select(&["min", "max"][..]), inner.clone(), inner.clone())
                .prop_map(|(name, x, y)| Tree::Call(name, vec![x, y])),
            1 => [inner.clone(), inner.clone(), inner].prop_map(|of| Tree::Call("if", of.to_vec())),
        ]
    })
}
