//! Slurm's lists of machines, such as `a[1-3,08],b`.

/// The most machines of a range, as in Slurm.
const MOST: u64 = 65_536;

/// The most digits of a number, as of the largest one.
const MOST_DIGITS: usize = 20;

/// The most machines of a list.
const MOST_OF_LIST: usize = 1_000_000;

/// Returns the names of a list, in its order. All brackets but the last ones are at the end of a part: `n[1-2]m[3-4]`.
///
/// # Errors
/// A list that Slurm refuses, in its words.
pub(super) fn names(list: &str) -> Result<Vec<String>, String> {
    let mut inside = false;
    let entries = list.split(|letter: char| {
        inside = letter == '[' || (inside && letter != ']');
        (letter == ',' || letter.is_ascii_whitespace()) && !inside
    });
    let mut all = vec![];
    for entry in entries.filter(|entry| !entry.is_empty()) {
        let found = entry_names(entry).map_err(|why| format!("{why}Invalid hostlist: {list}"))?;
        if all.len() + found.len() > MOST_OF_LIST {
            return Err(format!("Too many hosts\nInvalid hostlist: {list}"));
        }
        all.extend(found);
    }
    Ok(all)
}

/// Returns the names of a list without commas outside of brackets, or the line before the error.
fn entry_names(entry: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut rest = entry;
    while let Some((prefix, more)) = rest.split_once('[') {
        let (ranges, more) = more.split_once(']').ok_or("")?;
        let mut numbers = vec![];
        for range in ranges.split(',') {
            numbers.extend(range_numbers(range)?);
        }
        if names.len().saturating_mul(numbers.len()) > MOST_OF_LIST {
            return Err(format!("Too many hosts in `{entry}'\n"));
        }
        let join = |name: &String| {
            let begin = name.to_owned() + prefix;
            numbers.iter().map(move |number| format!("{begin}{number}")).collect::<Vec<_>>()
        };
        names = names.iter().flat_map(join).collect();
        rest = more;
    }
    if rest.is_empty() || names == [""] {
        return Ok(names.into_iter().map(|name| name + rest).collect());
    }
    // Slurm has no letters after the last brackets.
    Err(String::new())
}

/// Returns the numbers of `3`, `1-3` or `08-10`, with their widths.
fn range_numbers(range: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("Invalid range: `{range}'\n");
    let (first, end) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str| {
        let is_number =
            (1..=MOST_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_number)
    };
    let (Some(least), Some(most)) = (number(first), number(end)) else { return Err(wrong()) };
    if least > most {
        return Err(wrong());
    }
    if most - least >= MOST {
        return Err(format!("Too many hosts in range `{range}'\n"));
    }
    let width = first.len();
    Ok((least..=most).map(|number| format!("{number:0width$}")).collect())
}

/// A name as a list joins it: what is before its last number, and that number after its digits, as Slurm sorts them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Host {
    prefix: String,
    number: Option<(usize, u64)>,
}

impl Host {
    fn new(name: &str) -> Host {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count().min(18);
        let (prefix, number) = name.split_at(name.len() - digits);
        Host { prefix: prefix.to_owned(), number: number.parse().ok().map(|number| (digits, number)) }
    }

    /// Returns whether this name follows another one in a range.
    fn follows(&self, last: &Host) -> bool {
        let (Some((width, number)), Some((before, last_number))) = (self.number, last.number) else {
            return false;
        };
        let is_as_wide = width == before || (width > before && number.to_string().len() == width);
        self.prefix == last.prefix && Some(number) == last_number.checked_add(1) && is_as_wide
    }
}

/// Returns the list of some names: neighbours with the same beginning are joined. `a1,a2,b` is `a[1-2],b`.
pub(super) fn joined(names: &[String], sorted: bool) -> String {
    let mut hosts: Vec<Host> = names.iter().map(|name| Host::new(name)).collect();
    if sorted {
        hosts.sort();
    }
    let mut groups: Vec<(&str, Vec<String>)> = vec![];
    let mut rest = &hosts[..];
    while let [first, ..] = rest {
        let pairs = rest.iter().zip(&rest[1..]);
        let count = 1 + pairs.take_while(|(before, next)| next.follows(before)).count();
        let range = first.number.map(|(width, number)| {
            let end = number + count as u64 - 1;
            if count == 1 { format!("{number:0width$}") } else { format!("{number:0width$}-{end:0width$}") }
        });
        match (
            groups.last_mut().filter(|(prefix, ranges)| *prefix == first.prefix && !ranges.is_empty()),
            range,
        ) {
            (Some((_, ranges)), Some(range)) => ranges.push(range),
            (_, range) => groups.push((&first.prefix, range.into_iter().collect())),
        }
        rest = &rest[count..];
    }
    let text = |(prefix, ranges): &(&str, Vec<String>)| match &ranges[..] {
        [one] if !one.contains('-') => format!("{prefix}{one}"),
        [] => (*prefix).to_owned(),
        _ => format!("{prefix}[{}]", ranges.join(",")),
    };
    groups.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_names(list: &str, expect: &str) {
        assert_eq!(names(list).map(|names| names.join(" ")).as_deref(), Ok(expect), "{list}");
    }

    #[track_caller]
    fn check_joined(list: &str, expect: &str, expect_sorted: &str) {
        let names: Vec<String> = list.split(',').map(str::to_owned).collect();
        assert_eq!(
            (&joined(&names, false)[..], &joined(&names, true)[..]),
            (expect, expect_sorted),
            "{list}"
        );
    }

    /// The answers of Slurm 22.05.8.
    #[test]
    fn lists_are_those_of_slurm() {
        check_names("a[3,1,2]", "a3 a1 a2");
        check_names("n[1-2]m[3-4]", "n1m3 n1m4 n2m3 n2m4");
        check_names("[1-2][3-4]", "13 14 23 24");
        check_names("a[1-2,5]b[2]", "a1b2 a2b2 a5b2");
        check_names("a[08-10,12]", "a08 a09 a10 a12");
        check_names("a[001-3]", "a001 a002 a003");
        check_names(",a,,b c]", "a b c]");
        check_names("a1,a1", "a1 a1");
        check_names("", "");
        for list in
            ["a[3-0]", "a[]", "a[x-y]", "a[1--2]", "a[1,]", "a[1-2]-ib", "n[1-2]m", "a[1-200000]", "a[1-2"]
        {
            let error = names(list).unwrap_err();
            assert!(error.ends_with(&format!("Invalid hostlist: {list}")), "{error}");
        }
    }

    #[test]
    fn a_list_does_not_fill_the_memory() {
        for list in ["a[1-60000]b[1-60000]", &vec!["a[1-65000]"; 100].join(",")] {
            assert!(names(list).is_err());
        }
        assert!(names("a[99999999999999999999-99999999999999999999]").is_err());
        assert!(names(&format!("a[{}1-9]", "0".repeat(70_000))).is_err());
    }

    #[test]
    fn names_are_joined_as_by_slurm() {
        check_joined("a3,a1,a2", "a[3,1-2]", "a[1-3]");
        check_joined("a1,a1,a2", "a[1,1-2]", "a[1,1-2]");
        check_joined("a01,a1", "a[01,1]", "a[1,01]");
        check_joined("b1,a1", "b1,a1", "a1,b1");
        check_joined("a9,a10,a11", "a[9-11]", "a[9-11]");
        check_joined("n1m3,n1m4,n2m3,n2m4", "n1m[3-4],n2m[3-4]", "n1m[3-4],n2m[3-4]");
        check_joined("a1b,a2b", "a1b,a2b", "a1b,a2b");
        check_joined("a09,a10", "a[09-10]", "a[09-10]");
        check_joined("a008,a009,a010", "a[008-010]", "a[008-010]");
        check_joined("a1,b,a2", "a1,b,a2", "a[1-2],b");
        check_joined("b2,a1,b1", "b2,a1,b1", "a1,b[1-2]");
    }
}
