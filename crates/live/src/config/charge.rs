//! What jobs cost in the usage of their users and groups: a formula, as `cpus + 8 * gpus + memory / 16GiB`.

use miserly_engine::ChargeTerms;
use miserly_formula::Formula;
use miserly_units::parse_memory;

use super::error::{Problem, of_field};
use super::file::File;

/// The names in the formula. Memory is in GiB.
const NAMES: [&str; 3] = ["cpus", "gpus", "memory"];
/// The bytes of a GiB.
const GIBI: f64 = (1_u64 << 30) as f64;
/// The parts of a processor in which a charge is kept, and the largest charge of one unit.
const PARTS: f64 = 1e6;
const MOST: f64 = 1e6;

/// Returns what jobs cost, if the file has it.
pub(super) fn checked(file: &File) -> Result<Option<ChargeTerms>, Problem> {
    let read = |written: &toml::Spanned<String>| {
        terms(written.get_ref()).map_err(|problem| of_field(written, "charge", &problem))
    };
    file.charge.as_ref().map(read).transpose()
}

/// Returns the weights of a sum of weighted resources.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a weight is 0 to a million")]
fn terms(text: &str) -> Result<ChargeTerms, String> {
    let formula = Formula::parse(&without_units(text)?, &NAMES).map_err(|error| error.to_string())?;
    let value = |amounts: [f64; 3]| formula.eval(&amounts);
    let weights = [0, 1, 2].map(|name| {
        let mut one = [0.0; 3];
        one[name] = 1.0;
        value(one)
    });
    let is_sum = |amounts: [f64; 3]| {
        let sum: f64 = weights.iter().zip(amounts).map(|(weight, amount)| weight * amount).sum();
        (value(amounts) - sum).abs() <= 1e-9 * sum.abs()
    };
    if ![[0.0; 3], [2.0, 3.0, 5.0], [64.0, 0.0, 7.0], [1.0, 8.0, 512.0]].into_iter().all(is_sum) {
        return Err(format!(
            "{text:?} is no sum of weighted resources, such as \"cpus + 8 * gpus + memory / 16GiB\""
        ));
    }
    if !weights.iter().all(|weight| (0.0..=MOST).contains(weight))
        || weights.iter().all(|weight| *weight == 0.0)
    {
        return Err(format!("{text:?}: each weight is 0 to a million, and one of them is not 0"));
    }
    let [cpus, gpus, memory] = weights.map(|weight| (weight * PARTS).round() as u64);
    Ok(ChargeTerms { cpus, gpus, memory })
}

/// Returns a formula with each amount of memory as a number of GiB.
fn without_units(text: &str) -> Result<String, String> {
    let mut formula = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '.' || letter == '_';
        let length = |text: &str| text.find(|letter| !is_part(letter)).unwrap_or(text.len());
        let mut end = length(rest).max(letter.len_utf8());
        // The sign of an exponent belongs to its number.
        let number = rest[..end].strip_suffix(['e', 'E']).is_some_and(|number| number.parse::<f64>().is_ok());
        if letter.is_ascii_digit() && number && rest[end..].starts_with(['+', '-']) {
            end += 1 + length(&rest[end + 1..]);
        }
        let (word, after) = rest.split_at(end);
        if letter.is_ascii_digit() && word.parse::<f64>().is_err() {
            let bytes = parse_memory(word).map_err(|error| error.to_string())?;
            formula += &(bytes as f64 / GIBI).to_string();
        } else {
            formula += word;
        }
        rest = after;
    }
    Ok(formula)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_a_sum_of_weighted_resources() {
        let check = |text: &str, cpus: u64, gpus: u64, memory: u64| {
            assert_eq!(terms(text), Ok(ChargeTerms { cpus, gpus, memory }), "{text}");
        };
        check("cpus + 8 * gpus + memory / 16GiB", 1_000_000, 8_000_000, 62_500);
        check("cpus", 1_000_000, 0, 0);
        check("(cpus + memory/4096MiB) * 2 + 1e1*gpus", 2_000_000, 10_000_000, 500_000);
        check("gpus * 2.5", 0, 2_500_000, 0);
        check("1e-3*cpus + 1.5E+1*gpus + 2e-1 * memory", 1_000, 15_000_000, 200_000);
        for wrong in [
            "",
            "cpus +",
            "nodes",
            "cpus + 1",
            "cpus * gpus",
            "max(cpus, 8 * gpus)",
            "cpus - gpus",
            "0 * cpus",
            "cpus * 1e9",
            "memory / 16parsecs",
        ] {
            assert!(terms(wrong).is_err(), "{wrong}");
        }
    }
}
