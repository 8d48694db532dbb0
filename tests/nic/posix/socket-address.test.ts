/** Addresses of devices, as 16 bytes and as the C library takes them. */
import t from 'tap'
import { AF_INET, AF_INET6 } from '../../../nic/posix/constants.ts'
import {
  addressIn,
  isMapped,
  mappedAddress,
  socketAddress,
  textOfAddress,
} from '../../../nic/posix/socket-address.ts'

t.test('an address as 16 bytes', async t => {
  const cases: [address: string, bytes: string][] = [
    ['10.77.0.1', '00000000000000000000ffff0a4d0001'],
    ['255.255.255.255', '00000000000000000000ffffffffffff'],
    ['2001:db8::1', '20010db8000000000000000000000001'],
    ['2001:db8:1:2:3:4:5:6', '20010db8000100020003000400050006'],
    ['fd00::', 'fd000000000000000000000000000000'],
    ['::1', '00000000000000000000000000000001'],
    ['::', '00000000000000000000000000000000'],
    ['::ffff:10.77.0.1', '00000000000000000000ffff0a4d0001'],
  ]
  for (const [address, bytes] of cases) t.equal(mappedAddress(address).toString('hex'), bytes, address)
  t.ok(isMapped(mappedAddress('10.77.0.1')))
  t.notOk(isMapped(mappedAddress('2001:db8::1')))
})

t.test(
  'as the C library takes it: the family in the order of this machine, the rest in that of the network',
  async t => {
    const four = socketAddress(mappedAddress('10.77.0.1'), 0x1234)
    t.equal(four.readUInt16LE(0), AF_INET)
    t.equal(four.toString('hex', 2, 8), '12340a4d0001')
    t.ok(four.subarray(8).every(byte => byte === 0))
    const six = socketAddress(mappedAddress('2001:db8::1'), 443)
    t.equal(six.readUInt16LE(0), AF_INET6)
    t.equal(six.toString('hex', 2, 24), '01bb0000000020010db8000000000000000000000001')
    t.ok(six.subarray(24).every(byte => byte === 0))
  },
)

t.test('an address as text, and out of a structure', async t => {
  for (const address of ['10.77.0.1', '::1', '2001:db8::1', 'fd00:1:2::3']) {
    t.equal(textOfAddress(mappedAddress(address)), address)
    t.equal(textOfAddress(addressIn(socketAddress(mappedAddress(address), 80))), address)
  }
})
