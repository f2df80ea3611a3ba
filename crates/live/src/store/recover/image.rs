//! A database as its files have it, page by page, without `SQLite`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::wal::Frame;
use crate::store::schema;

/// The size of a page, bytes.
pub(super) const PAGE: usize = schema::PAGE as usize;

/// The database's file with the pages of its log laid over it.
pub(super) struct Image<'a> {
    file: &'a File,
    /// How many pages the file has, the last perhaps in part.
    pages: u32,
    log: BTreeMap<u32, &'a [u8]>,
}

impl<'a> Image<'a> {
    pub(super) fn new(file: &'a File, frames: &[Frame<'a>]) -> io::Result<Image<'a>> {
        let pages = pages(file)?;
        // No page lies far behind all others: such a number is damage.
        let limit = pages.saturating_add(u32::try_from(frames.len()).unwrap_or(u32::MAX));
        let laid = frames.iter().filter(|frame| (1..=limit).contains(&frame.page));
        Ok(Image { file, pages, log: laid.map(|frame| (frame.page, frame.data)).collect() })
    }

    /// The number of the last page; the first is 1.
    pub(super) fn end(&self) -> u32 {
        self.log.last_key_value().map_or(0, |(&page, _)| page).max(self.pages)
    }

    /// A page; what is not there is 0.
    pub(super) fn page(&self, number: u32) -> io::Result<Vec<u8>> {
        if let Some(&data) = self.log.get(&number) {
            return Ok(data.to_vec());
        }
        let mut page = vec![0; PAGE];
        let mut read = 0;
        while read < PAGE && (1..=self.pages).contains(&number) {
            let at = u64::from(number - 1) * PAGE as u64 + read as u64;
            match self.file.read_at(&mut page[read..], at)? {
                0 => break,
                more => read += more,
            }
        }
        Ok(page)
    }
}

/// How many pages a database's file has.
pub(super) fn pages(file: &File) -> io::Result<u32> {
    // SQLite has no more pages than that.
    Ok(u32::try_from(file.metadata()?.len().div_ceil(PAGE as u64)).unwrap_or(u32::MAX - 1))
}
