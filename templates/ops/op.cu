%{indent}// %{step} [%{id}]
%{indent}at_op<%{index}>(%{iteration});
%{indent}me = renewed(me);
%{text}
