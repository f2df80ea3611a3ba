//! Detection of a log's compression by its first bytes.

use std::io::{self, BufRead, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// A compression that is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    start: &'static [u8],
    /// Name.
    pub name: &'static str,
    /// Command that decompresses a file; the file name follows it.
    pub command: &'static str,
}

const GZIP: &[u8] = &[0x1f, 0x8b];

const OTHERS: [Compression; 4] = [
    Compression { start: b"\xfd7zXZ\0", name: "xz", command: "xz -dk" },
    Compression { start: b"BZh", name: "bzip2", command: "bzip2 -dk" },
    Compression { start: b"PK\x03\x04", name: "zip", command: "unzip" },
    Compression { start: b"\x1f\x9d", name: "compress", command: "uncompress -k" },
];

/// Returns whether a file with these first bytes is gzipped.
pub(crate) fn is_gzipped(start: &[u8]) -> bool {
    start.starts_with(GZIP)
}

const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Returns whether a file with these first bytes is compressed by zstd.
pub(crate) fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(ZSTD)
}

/// A reader of what zstd compressed: frames, one behind the other.
pub(crate) struct ZstdReader<R: BufRead>(Zstd<R>);

enum Zstd<R: BufRead> {
    Between(R),
    Within(Box<StreamingDecoder<R, FrameDecoder>>),
    Damaged,
}

impl<R: BufRead> ZstdReader<R> {
    pub(crate) fn new(input: R) -> ZstdReader<R> {
        ZstdReader(Zstd::Between(input))
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.0, Zstd::Damaged) {
                Zstd::Damaged => return Err(io::Error::other("damaged")),
                Zstd::Between(mut input) => {
                    let Some(&first) = input.fill_buf()?.first() else {
                        self.0 = Zstd::Between(input);
                        return Ok(0);
                    };
                    // Frames of other data begin with 0x50 to 0x5f, and have their length in bytes 4 to 7.
                    if first & 0xf0 == 0x50 {
                        let mut head = [0; 8];
                        input.read_exact(&mut head)?;
                        let length =
                            head[4..].iter().rev().fold(0, |length, &byte| length << 8 | u64::from(byte));
                        io::copy(&mut input.by_ref().take(length), &mut io::sink())?;
                        self.0 = Zstd::Between(input);
                    } else {
                        let decoder = StreamingDecoder::new(input).map_err(io::Error::other)?;
                        self.0 = Zstd::Within(Box::new(decoder));
                    }
                }
                Zstd::Within(mut decoder) => match decoder.read(buffer)? {
                    0 if !buffer.is_empty() => self.0 = Zstd::Between(decoder.into_inner()),
                    length => {
                        self.0 = Zstd::Within(decoder);
                        return Ok(length);
                    }
                },
            }
        }
    }
}

/// Returns whether a file with these first bytes is a tar archive, gzipped or not.
pub(crate) fn is_tar(start: &[u8]) -> bool {
    const MAGIC: (usize, &[u8]) = (257, b"ustar");
    let has_magic = |bytes: &[u8]| bytes.get(MAGIC.0..).is_some_and(|rest| rest.starts_with(MAGIC.1));
    if !is_gzipped(start) {
        return has_magic(start);
    }
    let mut first = Vec::new();
    let length = (MAGIC.0 + MAGIC.1.len()) as u64;
    // A damaged file is reported when its lines are read.
    MultiGzDecoder::new(start).take(length).read_to_end(&mut first).is_ok() && has_magic(&first)
}

/// Returns the unsupported compression of a file with these first bytes, if any.
pub(crate) fn unsupported_compression(start: &[u8]) -> Option<Compression> {
    OTHERS.into_iter().find(|compression| start.starts_with(compression.start))
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = vec![];
        ZstdReader::new(bytes).read_to_end(&mut text).map(|_| text)
    }

    #[test]
    fn frames_of_zstd() {
        let text = b"1 0 -1 60 4 -1 -1 4 90\n".repeat(10_000);
        let frame = compress_to_vec(&text[..], CompressionLevel::Fastest);
        assert!(is_zstd(&frame) && frame.len() < text.len() / 10);
        let other = [0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 7, 7, 7];
        let whole = [&frame[..], &other, &frame].concat();
        assert!(unpacked(&whole).is_ok_and(|found| found == text.repeat(2)));
        assert!(unpacked(&frame[..frame.len() - 9]).is_err());
        assert!(unpacked(&[&frame[..], b"xxxx"].concat()).is_err());
    }
}
