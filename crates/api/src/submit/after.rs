//! The notation of conditions on other jobs.

use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::model::{Condition, When};

use super::quantity::digits;

/// Parses conditions on other jobs: `12,13`, `4-903`, `ok:12,13,notok:14`, `each-ok:20`, `ok:name=prepare`, `ok:20_3`,
/// `ok:20_3-7`.
///
/// A kind applies to the jobs after it, up to the next kind. Without one, any end of a job counts. The notation of
/// sbatch is understood, too: `afterok:12:13,afterany:14`.
///
/// # Errors
/// Any other text.
pub fn after(text: &str) -> Result<Vec<Condition>, String> {
    if text.contains('?') {
        return Err(
            "conditions with ? between them cannot be written: all conditions have to hold".to_owned()
        );
    }
    let mut when = When::Any;
    let mut conditions = vec![];
    for part in text.split(',').map(str::trim) {
        let mut jobs = part;
        if let Some((word, rest)) = part.split_once(':').filter(|_| !part.starts_with(NAME)) {
            when = kind(word)?;
            jobs = rest;
        }
        if let Some(name) = jobs.strip_prefix(NAME) {
            conditions.push(named(when, name)?);
            continue;
        }
        for job in jobs.split(':') {
            conditions.extend(numbered(when, job.trim())?);
            if conditions.len() > MOST {
                return Err(format!(
                    "{text}: a job waits for at most {MOST} jobs; use an array, such as ok:20"
                ));
            }
        }
    }
    Ok(conditions)
}

const NAME: &str = "name=";

/// The most conditions of a job.
const MOST: usize = 1000;

fn kind(word: &str) -> Result<When, String> {
    match word {
        "any" | "afterany" => Ok(When::Any),
        "ok" | "afterok" => Ok(When::Ok),
        "notok" | "afternotok" => Ok(When::NotOk),
        "each-ok" | "aftercorr" => Ok(When::EachOk),
        "after" => Err("the start of a job is no condition here; write any:JOB for its end".to_owned()),
        _ => Err(format!("{word:?} is no condition; write any:JOB, ok:JOB, notok:JOB or each-ok:ARRAY")),
    }
}

fn named(when: When, name: &str) -> Result<Condition, String> {
    if name.is_empty() {
        return Err("give the name of a job after name=".to_owned());
    }
    Ok(Condition { when, name: Some(name.to_owned()), ..Condition::default() })
}

/// Returns the conditions on a job, on those of a range, or on jobs of an array: `12`, `4-903`, `20_3`, `20_3-7`.
fn numbered(when: When, text: &str) -> Result<Vec<Condition>, String> {
    if text == "singleton" {
        return Err(
            "singleton is no condition here; write any:name=NAME, with the name of the job".to_owned()
        );
    }
    let read = || match text.split_once('_') {
        Some((job, indexes)) => {
            let (job, indexes) = (digits::<i64>(job).filter(|job| *job > 0)?, range::<u32>(indexes)?);
            let of_index = |index| Condition { when, job: Some(job), index: Some(index), name: None };
            Some(indexes.take(MOST + 1).map(of_index).collect())
        }
        None => {
            let jobs = range::<i64>(text).filter(|jobs| *jobs.start() > 0)?;
            Some(
                jobs.take(MOST + 1)
                    .map(|job| Condition { when, job: Some(job), ..Condition::default() })
                    .collect(),
            )
        }
    };
    read().ok_or_else(|| {
        format!(
            "{text:?} is no job; write its number, such as 12, a range, such as 4-903, ARRAY_INDEX, such as 12_3, or name=NAME, \
             with commas between jobs"
        )
    })
}

/// Parses a number, or a range of them with both ends.
fn range<T: FromStr + Copy + PartialOrd>(text: &str) -> Option<RangeInclusive<T>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (digits(first)?, digits(last)?);
    (first <= last).then_some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(when: When, job: i64) -> Condition {
        Condition { when, job: Some(job), ..Condition::default() }
    }

    #[track_caller]
    fn check(text: &str, expect: &[Condition]) {
        assert_eq!(after(text).as_deref(), Ok(expect), "{text}");
    }

    #[test]
    fn conditions() {
        check("12, 13", &[of(When::Any, 12), of(When::Any, 13)]);
        check("ok:12,13,notok:14", &[of(When::Ok, 12), of(When::Ok, 13), of(When::NotOk, 14)]);
        check("12,ok:13,any:14", &[of(When::Any, 12), of(When::Ok, 13), of(When::Any, 14)]);
        check("each-ok:20", &[of(When::EachOk, 20)]);
        let named = Condition { when: When::Ok, name: Some("a:b".into()), ..Condition::default() };
        check("ok:name=a:b,12", &[named.clone(), of(When::Ok, 12)]);
        check("name=a:b", &[Condition { when: When::Any, ..named }]);
        check("ok:20_3", &[Condition { index: Some(3), ..of(When::Ok, 20) }]);
    }

    #[test]
    fn ranges() {
        check("4-6,9", &[of(When::Any, 4), of(When::Any, 5), of(When::Any, 6), of(When::Any, 9)]);
        check("ok:7-7", &[of(When::Ok, 7)]);
        check("afterok:4-5:9", &[of(When::Ok, 4), of(When::Ok, 5), of(When::Ok, 9)]);
        let of_index = |index| Condition { index: Some(index), ..of(When::NotOk, 20) };
        check("notok:20_3-4", &[of_index(3), of_index(4)]);
        assert_eq!(after("1-1000").map(|all| all.len()), Ok(1000));
        for most in ["1-1001", "1-9999999999", "1-900,901-1800", "ok:20_0-4294967295"] {
            assert!(after(most).unwrap_err().contains("at most 1000"), "{most}");
        }
    }

    #[test]
    fn the_notation_of_sbatch() {
        let two = [of(When::Ok, 12), of(When::Ok, 13)];
        check("afterok:12:13", &two);
        check(
            "afterok:12:13,afterany:14,afternotok:5",
            &[two[0].clone(), two[1].clone(), of(When::Any, 14), of(When::NotOk, 5)],
        );
        check("aftercorr:20", &[of(When::EachOk, 20)]);
    }

    #[test]
    fn what_is_no_condition() {
        for bad in [
            "",
            "0",
            "12,",
            "-1",
            "a",
            "ok:",
            "ok",
            "maybe:12",
            "after:12",
            "singleton",
            "afterok:12?afterok:13",
            "ok:name=",
            "12_",
            "_3",
            "12+5",
            "5-4",
            "0-4",
            "4-",
            "1-2-3",
            "20_4-3",
            "99999999999999999999",
        ] {
            assert!(after(bad).is_err(), "{bad:?}");
        }
        assert!(after("singleton").unwrap_err().contains("name=NAME"));
    }
}
