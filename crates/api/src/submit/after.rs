//! The notation of conditions on other jobs.

use crate::model::{Condition, IndexRange, JobRef, When, split_outside};

/// The most jobs that the conditions of a submission name.
const MOST: u64 = 1000;

/// Parses conditions on other jobs: `12,13`, `ok:12-20,notok:24`, `each-ok:20`, `ok:name=prepare`, `ok:20_3`, `ok:20[3-8]`.
///
/// A kind applies to the jobs after it, up to the next kind. Without one, any end of a job counts. The notation of
/// sbatch is understood, too: `afterok:12:13,afterany:14`.
///
/// # Errors
/// Any other text, and more than 1000 jobs.
pub fn after(text: &str) -> Result<Vec<Condition>, String> {
    if text.contains('?') {
        return Err(
            "conditions with ? between them cannot be written: all conditions have to hold".to_owned()
        );
    }
    let mut when = When::Any;
    let mut conditions = vec![];
    for part in parts(text) {
        let mut jobs = part;
        if let Some((word, rest)) = kind_of(part) {
            when = kind(word)?;
            jobs = rest;
        }
        if let Some(name) = jobs.strip_prefix(NAME) {
            conditions.push(named(when, name)?);
            continue;
        }
        for job in split_outside(jobs, ':') {
            numbered(when, job.trim(), &mut conditions)?;
        }
    }
    Ok(conditions)
}

/// Splits conditions at their commas, except those in brackets. A name may contain brackets.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = vec![];
    let mut left = Some(text);
    while let Some(text) = left {
        let is_named = text.trim_start().starts_with(NAME)
            || kind_of(text).is_some_and(|(_, rest)| rest.starts_with(NAME));
        let length = if is_named { text.find(',') } else { Some(split_outside(text, ',')[0].len()) };
        let (part, rest) = text.split_at(length.unwrap_or(text.len()));
        parts.push(part.trim());
        left = rest.strip_prefix(',');
    }
    parts
}

/// Returns the kind of a condition, and the jobs after it.
fn kind_of(part: &str) -> Option<(&str, &str)> {
    let (word, rest) = part.trim_start().split_once(':')?;
    (!word.starts_with(NAME) && !word.contains(['[', ','])).then_some((word, rest))
}

const NAME: &str = "name=";

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

/// Adds the conditions on jobs that are named by their numbers.
fn numbered(when: When, text: &str, conditions: &mut Vec<Condition>) -> Result<(), String> {
    if text == "singleton" {
        return Err(
            "singleton is no condition here; write any:name=NAME, with the name of the job".to_owned()
        );
    }
    let jobs: JobRef =
        text.parse().map_err(|problem| format!("{problem}, or the name of a job, name=NAME"))?;
    if jobs.count().saturating_add(conditions.len() as u64) > MOST {
        return Err(format!("{jobs}: a job waits for at most {MOST} jobs; use an array, such as ok:20"));
    }
    let one = |job: i64, index: Option<u32>| Condition { when, job: Some(job), index, name: None };
    match jobs {
        JobRef::One(job) => conditions.push(one(job, None)),
        JobRef::Range(first, last) => conditions.extend((first..=last).map(|job| one(job, None))),
        JobRef::Array(array, indexes) => {
            let indexes = indexes.into_iter().flat_map(IndexRange::indexes);
            conditions.extend(indexes.map(|index| one(array, Some(index))));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(when: When, job: i64) -> Condition {
        Condition { when, job: Some(job), ..Condition::default() }
    }

    #[track_caller]
    fn check(text: &str, expect: &[Condition]) {
        assert_eq!(after(text).as_deref(), Ok(expect), "{text}");
    }

    #[test]
    fn conditions() {
        check("12, 13", &[job(When::Any, 12), job(When::Any, 13)]);
        check("ok:12,13,notok:14", &[job(When::Ok, 12), job(When::Ok, 13), job(When::NotOk, 14)]);
        check("12,ok:13,any:14", &[job(When::Any, 12), job(When::Ok, 13), job(When::Any, 14)]);
        check("each-ok:20", &[job(When::EachOk, 20)]);
        let named = Condition { when: When::Ok, name: Some("a:b".into()), ..Condition::default() };
        check("ok:name=a:b,12", &[named.clone(), job(When::Ok, 12)]);
        check("name=a:b", &[Condition { when: When::Any, ..named }]);
        let indexed = |index| Condition { index: Some(index), ..job(When::Ok, 20) };
        check("ok:20_3", &[indexed(3)]);
        check("ok:20[3-5:2,7]", &[indexed(3), indexed(5), indexed(7)]);
        check(
            "ok:20[3-5:2]:12,name=a[,13",
            &[
                indexed(3),
                indexed(5),
                job(When::Ok, 12),
                Condition { when: When::Ok, name: Some("a[".into()), ..Condition::default() },
                job(When::Ok, 13),
            ],
        );
        check("ok:4-6,notok:8", &[job(When::Ok, 4), job(When::Ok, 5), job(When::Ok, 6), job(When::NotOk, 8)]);
    }

    #[test]
    fn ranges() {
        check("4-6,9", &[job(When::Any, 4), job(When::Any, 5), job(When::Any, 6), job(When::Any, 9)]);
        check("ok:7-7", &[job(When::Ok, 7)]);
        check("afterok:4-5:9", &[job(When::Ok, 4), job(When::Ok, 5), job(When::Ok, 9)]);
        let of_index = |index| Condition { index: Some(index), ..job(When::NotOk, 20) };
        check("notok:20_3-4", &[of_index(3), of_index(4)]);
        assert_eq!(after("1-1000").map(|all| all.len()), Ok(1000));
        for most in ["1-1001", "1-9999999999", "1-900,901-1800", "ok:20_0-4294967295"] {
            assert!(after(most).unwrap_err().contains("at most 1000"), "{most}");
        }
    }

    #[test]
    fn the_notation_of_sbatch() {
        let two = [job(When::Ok, 12), job(When::Ok, 13)];
        check("afterok:12:13", &two);
        check(
            "afterok:12:13,afterany:14,afternotok:5",
            &[two[0].clone(), two[1].clone(), job(When::Any, 14), job(When::NotOk, 5)],
        );
        check("aftercorr:20", &[job(When::EachOk, 20)]);
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
            "6-4",
            "ok:20[",
            "ok:20[5-3]",
            "20[0-1000]",
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
