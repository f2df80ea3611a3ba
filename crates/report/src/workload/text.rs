//! The small parts that the texts are made of: durations, shares, bars, wrapped lists.

use miserly_units::{duration_rounded, span_of_seconds};
use miserly_workload::describe::{Common, Share};

/// No line of the texts is longer, unless a name in it is.
pub(super) const WIDTH: usize = 96;

/// Where what is said of a finding begins.
pub(super) const INDENT: usize = 4;

/// Where the text of a labelled line begins.
pub(super) const LABEL: usize = 13;

/// Returns a number of seconds as a rounded duration.
pub(super) fn duration(seconds: f64) -> String {
    duration_rounded(span_of_seconds(seconds))
}

/// A number to three digits or to the last whole one, without zeros at its end.
pub(super) fn short(value: f64) -> String {
    let decimals = match value.abs() {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// `9.3 %`; a dash of nothing.
pub(super) fn percent(share: Share) -> String {
    share.fraction().map_or_else(|| "-".to_owned(), |fraction| format!("{:.1} %", fraction * 100.0))
}

/// `7174 of 77216 (9.3 %)`.
pub(super) fn share(share: Share) -> String {
    match share {
        Share { of: 0, .. } => "none known".to_owned(),
        Share { count, of } if count == of => format!("all {of}"),
        Share { count, of } => format!("{count} of {of} ({})", percent(share)),
    }
}

/// Values with their shares: `1 (34.2 %)`.
pub(super) fn commons(common: &[Common], show: impl Fn(u64) -> String) -> Vec<String> {
    common.iter().map(|common| format!("{} ({})", show(common.value), percent(common.share))).collect()
}

/// A bar of up to `width` signs, for a count among which the greatest is `most`.
pub(super) fn bar(count: u64, most: u64, width: u64) -> String {
    let signs = (u128::from(count) * u128::from(width)).div_ceil(u128::from(most.max(1)));
    "#".repeat(usize::try_from(signs).unwrap_or(0))
}

/// Items with spaces between, broken into lines that begin after an indent. The first line starts with `start`.
pub(super) fn wrapped(start: &str, items: &[String], indent: usize) -> String {
    let mut text = start.to_owned();
    let mut column = start.chars().count();
    for item in items {
        let length = item.chars().count();
        if column + length > WIDTH && column > indent {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        }
        text += item;
        text.push(' ');
        column += length + 1;
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// A kind of finding, how often it was met, and what it is about.
pub(super) fn counted(name: &str, count: u64, about: &str) -> String {
    let about: Vec<_> = about.split(' ').map(str::to_owned).collect();
    wrapped(&format!("  {name}: {count} - "), &about, INDENT)
}

/// Items with a comma after each but the last.
pub(super) fn with_commas(items: &[String]) -> Vec<String> {
    let last = items.len().saturating_sub(1);
    let comma =
        |(index, item): (usize, &String)| if index < last { format!("{item},") } else { item.clone() };
    items.iter().enumerate().map(comma).collect()
}

/// A line with a label in its own column; long lists go on below.
pub(super) fn labelled(label: &str, items: &[String]) -> String {
    wrapped(&format!("{label:LABEL$} "), &with_commas(items), LABEL + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!(share(Share { count: 7174, of: 77_216 }), "7174 of 77216 (9.3 %)");
        assert_eq!(share(Share { count: 3, of: 3 }), "all 3");
        assert_eq!(share(Share::default()), "none known");
    }

    #[test]
    fn bars_show_whatever_there_is() {
        assert_eq!([0, 1, 50, 100].map(|count| bar(count, 100, 10).len()), [0, 1, 5, 10]);
        assert_eq!(bar(0, 0, 10), "");
    }

    #[test]
    fn lists_are_wrapped() {
        let items: Vec<_> = (0..40).map(|item| format!("item{item}")).collect();
        let text = labelled("Items", &items);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH && !line.ends_with(' ')), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("              item")), "{text}");
        assert!(text.ends_with("item39\n"));
    }
}
