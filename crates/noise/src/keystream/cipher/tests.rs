use super::*;

fn hex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// NIST SP 800-38A, F.5.5 (CTR-AES256.Encrypt): keystream block = plaintext xor ciphertext. The standard
/// counts big-endian and this crate little-endian, so each block is given its counter.
#[test]
fn aes_counter_mode_matches_the_standard() {
    let key: [u8; 32] =
        hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4").try_into().unwrap();
    let counter = u128::from_be_bytes(hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff").try_into().unwrap());
    let plain = hex(concat!(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51",
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
    ));
    let coded = hex(concat!(
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5",
        "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
    ));
    let cipher = Aes256Enc::new(&Array(key));
    for (i, (plain, coded)) in plain.chunks(16).zip(coded.chunks(16)).enumerate() {
        let mut stream = [0; 16];
        fill_aes(&cipher, (counter + i as u128).to_be_bytes(), &mut stream);
        assert!(stream.iter().zip(plain.iter().zip(coded)).all(|(s, (p, c))| *s == p ^ c));
    }
}

/// Checked by the compiler: every type that holds a key wipes it on drop.
#[test]
fn keys_are_wiped_on_drop() {
    fn wiped<T: zeroize::ZeroizeOnDrop>() {}
    wiped::<Aes256Enc>();
    wiped::<Zeroizing<[u8; 32]>>();
    wiped::<sha2::Sha256>();
    #[cfg(target_arch = "x86_64")]
    wiped::<RoundKeys>();
}

#[test]
fn block_n_of_a_keystream_is_the_cipher_of_n() {
    let cipher = Aes256Enc::new(&Array([9; 32]));
    let mut stream = [0; 16 * 300];
    fill_aes(&cipher, aes_counter(1, (1 << 40) - 5), &mut stream);
    for (i, found) in stream.chunks(16).enumerate() {
        let mut block = Array(aes_counter(1, (1 << 40) - 5 + i as u64));
        cipher.encrypt_block(&mut block);
        assert_eq!(found, &block[..]);
    }
}

/// RFC 8439, A.1: the first blocks of the all-zero key, and block 1 with key 00..01.
#[test]
fn chacha_matches_the_standard() {
    let mut stream = [0; 128];
    fill_chacha(&[0; 32], 0, 0, &mut stream);
    assert_eq!(stream[..32], hex("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")[..]);
    assert_eq!(stream[64..96], hex("9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed")[..]);
    let mut key = [0; 32];
    key[31] = 1;
    fill_chacha(&key, 0, 1, &mut stream[..64]);
    assert_eq!(stream[..32], hex("3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a")[..]);
}

#[test]
fn any_part_of_a_keystream_is_the_same_wherever_it_starts() {
    for cipher in [Cipher::Aes256Ctr, Cipher::ChaCha20] {
        let stream = KeySource::new(&Key::from_seed_insecure(1), cipher).keystream(3);
        for origin in [0, (1 << 30) - 2, (1 << 50) - 1] {
            let mut whole = vec![0; 6 * GROUP_BYTES];
            stream.fill(origin, &mut whole);
            for first in 0..6 {
                let mut part = vec![0; (6 - first) * GROUP_BYTES];
                stream.fill(origin + first as u64, &mut part);
                assert_eq!(part, whole[first * GROUP_BYTES..]);
            }
        }
    }
}

#[test]
fn indices_keys_and_extras_never_share_bits() {
    let mut seen = std::collections::HashSet::new();
    for seed in [1, 2, 3] {
        for cipher in [Cipher::Aes256Ctr, Cipher::ChaCha20] {
            let source = KeySource::new(&Key::from_seed_insecure(seed), cipher);
            for index in [0, 1, 1 << 40] {
                let stream = source.keystream(index);
                let mut block = [0; GROUP_BYTES];
                stream.fill(0, &mut block);
                assert!(block.chunks(16).all(|b| seen.insert(b.to_vec())));
                for pair in 0..8 {
                    let extra: Vec<u8> = stream.extra(pair).iter().flat_map(|x| x.to_le_bytes()).collect();
                    assert!(seen.insert(extra));
                }
            }
        }
    }
    assert_eq!(seen.len(), 3 * 2 * 3 * 16);
}
