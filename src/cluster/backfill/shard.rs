//! Which part of the objects is ours: a stable hash of the uid.

use std::fmt;
use std::str::FromStr;

/// One of several equal parts: `0/4` is the first of four.
///
/// An object belongs to the part `FNV-1a-64(uid) mod N`. The hash is written out here and not
/// taken from the standard library, whose hashes may change between releases: two pods of one Job
/// with different builds must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// Everything.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// How many parts there are.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Whether an object belongs here.
    #[must_use]
    pub fn holds(self, uid: &str) -> bool {
        fnv1a_64(uid.as_bytes()) % u64::from(self.count) == u64::from(self.index)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let (index, count) = text.split_once('/').ok_or(ShardError)?;
        let parse = |text: &str| text.parse::<u32>().map_err(|_| ShardError);
        let shard = Self { index: parse(index)?, count: parse(count)? };
        if shard.index < shard.count { Ok(shard) } else { Err(ShardError) }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

/// A text that is no shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a shard is I/N with I from 0 to N-1, such as 0/4")]
pub struct ShardError;

/// 64 bits, for shards.
fn fnv1a_64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// 128 bits, to tell uids and documents apart without keeping them.
pub(super) fn fnv1a_128(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(number: u32) -> String {
        format!("{number:08x}-0000-4000-8000-{:012x}", u64::from(number) * 7919)
    }

    #[test]
    fn shards_are_disjoint_and_cover_everything_and_are_about_equal() {
        for count in [1, 2, 3, 7, 16] {
            let shards: Vec<Shard> = (0..count).map(|index| Shard { index, count }).collect();
            let mut sizes = vec![0_u32; shards.len()];
            for number in 0..10_000 {
                let uid = uid(number);
                let holders: Vec<usize> =
                    (0..shards.len()).filter(|index| shards[*index].holds(&uid)).collect();
                assert_eq!(holders.len(), 1, "{uid} of {count}");
                sizes[holders[0]] += 1;
            }
            let fair = 10_000 / count;
            assert!(sizes.iter().all(|size| size.abs_diff(fair) < fair / 4), "{sizes:?}");
        }
    }

    #[test]
    fn the_hash_is_the_published_one() {
        // The test vectors of the FNV page.
        assert_eq!(fnv1a_64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a_64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a_64(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(fnv1a_128(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    #[test]
    fn only_parts_that_exist_are_read() {
        assert_eq!("3/4".parse::<Shard>().map(|shard| shard.to_string()), Ok("3/4".to_owned()));
        for bad in ["", "4/4", "0/0", "1", "-1/4", "a/b", "1/2/3"] {
            assert_eq!(bad.parse::<Shard>(), Err(ShardError), "{bad}");
        }
    }
}
