/**
 * Lists of commands for `fc.modelRun` and `fc.asyncModelRun`. Lists of `fc.commands` shrink by the commands that ran before. The lists here shrink only
 * by their content, so that the seed and the path of a failure are enough to replay it.
 */
import fc from 'fast-check'

export const commandList = <Command>(
  commands: readonly fc.Arbitrary<Command>[],
  maxLength: number,
): fc.Arbitrary<Command[]> => fc.array(fc.oneof(...commands), { maxLength, size: 'max' })
